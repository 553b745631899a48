"""Bodies have their turns: an honest one beside a hostile one, none for whom nobody waits, and not too many."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.requests import ClientDisconnect

from pipelines.gateway import work
from pipelines.gateway.work import LARGE, TooBusyError, Work


async def here() -> bool:
    return False


async def away() -> bool:
    return True


def test_a_small_body_is_checked_beside_large_ones_which_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_PATIENCE", 0.2)
    ended = threading.Event()

    async def tried(pool: ThreadPoolExecutor) -> tuple[str, BaseException | str, str]:
        mine = Work(pool)
        large = asyncio.create_task(mine.run(lambda: ended.wait(20) and "large", LARGE + 1, here))
        await asyncio.sleep(0)
        small = await mine.run(lambda: "small", LARGE, here)
        (other,) = await asyncio.gather(mine.run(lambda: "other", LARGE + 1, here), return_exceptions=True)
        ended.set()
        return small, other, str(await large)

    with ThreadPoolExecutor(2) as pool:
        small, other, large = asyncio.run(tried(pool))
    assert (small, large) == ("small", "large")
    assert isinstance(other, TooBusyError), "it has not had its turn in time"


def test_a_body_whose_sender_has_gone_is_not_checked() -> None:
    called: list[int] = []
    with ThreadPoolExecutor(2) as pool, pytest.raises(ClientDisconnect):
        asyncio.run(Work(pool).run(lambda: called.append(1), 1, away))
    assert not called


def test_only_so_many_bodies_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_MOST_WAITING", 2)
    ended = threading.Event()

    async def tried(pool: ThreadPoolExecutor) -> list[object]:
        mine = Work(pool)
        under_way = [asyncio.create_task(mine.run(lambda: ended.wait(20), LARGE + 1, here)) for _ in range(4)]
        refused, _ = await asyncio.wait(under_way, timeout=2, return_when=asyncio.FIRST_COMPLETED)
        ended.set()
        await asyncio.wait(under_way)
        return [type(each.exception()) for each in refused]

    with ThreadPoolExecutor(2) as pool:
        assert asyncio.run(tried(pool)) == [TooBusyError]


def test_a_small_body_has_its_turn_before_larger_ones_that_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_MOST_WAITING", 3)
    begun: list[int] = []
    ended = threading.Event()

    async def tried(pool: ThreadPoolExecutor) -> list[object]:
        mine = Work(pool)

        def at(size: int) -> asyncio.Task[None]:
            return asyncio.create_task(mine.run(lambda: begun.append(size), size, here))

        busy = [asyncio.create_task(mine.run(lambda: ended.wait(20), 1, here)) for _ in range(3)]
        await asyncio.sleep(0)
        gone = at(2)
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        waiting = [at(size) for size in (500, 900, 400, 1)]  # one more than may wait: the largest gives way
        (refused,), _ = await asyncio.wait(waiting, timeout=2, return_when=asyncio.FIRST_COMPLETED)
        ended.set()
        await asyncio.wait([*busy, *waiting])
        after = await mine.run(lambda: "after", 1, here)
        return [waiting.index(refused), type(refused.exception()), after]

    with ThreadPoolExecutor(1) as pool:
        assert asyncio.run(tried(pool)) == [1, TooBusyError, "after"]
    assert begun == [1, 400, 500]
