"""Where bodies are checked: in threads, large bodies one after the other, small ones beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TypeVar

from starlette.requests import ClientDisconnect

T = TypeVar("T")

LARGE = 300_000
"""A body with more bytes may take a second or two, and memory of 20 times its size."""
_MOST_WAITING = 64
_PATIENCE = 4.0
"""Seconds that a body waits for its turn."""


class TooBusyError(Exception):
    """Too many bodies wait, or one has waited too long."""


class Work:
    """Runs functions that take time.

    Args:
        pool: The threads, two or more.
    """

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._small, self._large = asyncio.Semaphore(3), asyncio.Semaphore(1)
        self._waiting = 0

    async def run(self, function: Callable[[], T], size: int, gone: Callable[[], Awaitable[bool]]) -> T:
        """What a function returns.

        Args:
            function: The function.
            size: The bytes that it works at.
            gone: Whether nobody waits for it any more; then it is not called.

        Raises:
            TooBusyError: If it has not had its turn within a few seconds, or too many wait before it.
            ClientDisconnect: If nobody waits for it any more.
        """
        if self._waiting >= _MOST_WAITING:
            raise TooBusyError
        lane = self._large if size > LARGE else self._small
        self._waiting += 1
        try:
            async with asyncio.timeout(_PATIENCE):
                await lane.acquire()
        except TimeoutError:
            raise TooBusyError from None
        finally:
            self._waiting -= 1
        try:
            if await gone():
                raise ClientDisconnect
            return await asyncio.get_running_loop().run_in_executor(self._pool, function)
        finally:
            lane.release()
