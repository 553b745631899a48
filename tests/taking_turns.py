"""Several runs of pytest divide the files of tests between them while they run, so that all end at the same time.

Each takes the next file that no other has taken: ``pytest -p tests.taking_turns --taken=FOLDER``, with ``=``, as
pytest looks for its configuration beside any path that stands alone. A file is taken by creating a file in the folder,
which succeeds once. The tests of a file that need servers and those that need none are taken apart, and the former
first: they wait much, and what waits is best begun early.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha1
from itertools import groupby
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.addoption("--taken", type=Path, help="folder in which runs note which files they have taken")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests of the files that this run takes, as pytest's own loop runs all."""
    folder: Path | None = session.config.getoption("taken")
    if folder is None or session.config.option.collectonly or session.testsfailed:
        return None
    mine = taken(session.items, folder)
    item = next(mine, None)
    while item is not None:
        following = next(mine, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def taken(items: list[pytest.Item], folder: Path) -> Iterator[pytest.Item]:
    """The tests that this run is to run; each file is taken when its turn has come.

    Args:
        items: All tests that the run has selected.
        folder: Where files are taken.
    """
    mine: dict[tuple[str, bool], bool] = {}
    in_order = sorted(items, key=_needs_servers, reverse=True)  # else as they stand: sorting is stable
    for unit, tests in groupby(in_order, lambda item: (str(item.path), _needs_servers(item))):
        if unit not in mine:  # the tests of a file may stand apart, as those that failed last stand first with --ff
            mine[unit] = _take(folder / sha1(repr(unit).encode()).hexdigest())
        if mine[unit]:
            yield from tests


def _needs_servers(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("servers", "spark"))


def _take(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
