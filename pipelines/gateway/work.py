"""Where bodies are checked: in threads, large bodies one after the other, small ones beside them, the smallest first.

So a sender of few samples has its turn next, however many large bodies another one has sent before.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from itertools import count
from typing import TypeVar

from starlette.requests import ClientDisconnect

T = TypeVar("T")

LARGE = 300_000
"""A body with more bytes may take a second or two, and memory of 25 times its size."""
_MOST_WAITING = 64
_PATIENCE = 4.0
"""Seconds that a body waits for its turn."""


class TooBusyError(Exception):
    """Too many smaller bodies wait, or it has waited too long."""


class Work:
    """Runs functions that take time.

    Args:
        pool: The threads, two or more.
    """

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._small, self._large = _Lane(3), _Lane(1)

    async def run(self, function: Callable[[], T], size: int, gone: Callable[[], Awaitable[bool]]) -> T:
        """What a function returns.

        Args:
            function: The function.
            size: The bytes that it works at.
            gone: Whether nobody waits for it any more; then it is not called.

        Raises:
            TooBusyError: If it has not had its turn within a few seconds, or too many that are smaller wait.
            ClientDisconnect: If nobody waits for it any more.
        """
        lane = self._large if size > LARGE else self._small
        try:
            async with asyncio.timeout(_PATIENCE):
                await lane.enter(size)
        except TimeoutError:
            raise TooBusyError from None
        try:
            if await gone():
                raise ClientDisconnect
            return await asyncio.get_running_loop().run_in_executor(self._pool, function)
        finally:
            lane.leave()


class _Lane:
    """Places for some functions at a time. The one with the fewest bytes has its turn next; the largest ones give way.

    Args:
        places: How many run at a time.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._order = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    async def enter(self, size: int) -> None:
        """Returns when there is a place for a function that works at so many bytes.

        Raises:
            TooBusyError: If too many that are not larger wait.
        """
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mine = (size, next(self._order), turn)
        heapq.heappush(self._waiting, mine)
        if len(self._waiting) > _MOST_WAITING:
            largest = max(self._waiting)
            self._drop(largest)
            if not largest[2].done():
                largest[2].set_exception(TooBusyError())
        try:
            await turn
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._drop(mine)
            elif not turn.cancelled() and turn.exception() is None:
                self.leave()  # its turn came when it was no longer waited for
            raise

    def leave(self) -> None:
        """Gives the place to the next one."""
        while self._waiting:
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():  # else it has just been given up
                turn.set_result(None)
                return
        self._free += 1

    def _drop(self, one: tuple[int, int, asyncio.Future[None]]) -> None:
        self._waiting.remove(one)
        heapq.heapify(self._waiting)
