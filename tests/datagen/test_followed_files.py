"""Each line of a followed file comes once, whatever rotation does, and whenever the follower is started again."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from datagen.followed_files import LONGEST, FollowedFiles


class Follower:
    """Follows the logs of a folder; may be started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen = folder, list[bytes]()
        self.start()

    def start(self) -> None:
        self.files = FollowedFiles([str(self.folder / "*.log")], self.folder / "state" / "places.json")

    def look(self, looks: int = 2) -> list[bytes]:
        """What is new; a line that may go on comes with the second look."""
        found = [line for _ in range(looks) for read in self.files.new() for line in read.lines]
        self.files.save()
        self.seen += found
        return found


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    (tmp_path / "a.log").write_text("before\n")
    return Follower(tmp_path)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_it_begins_at_the_end_unless_it_is_asked_for_the_beginning(follower: Follower) -> None:
    assert follower.look() == []
    files = FollowedFiles([str(follower.folder / "a.log")], follower.folder / "other.json", from_start=True)
    assert [line for _ in range(2) for read in files.new() for line in read.lines] == [b"before"]


def test_a_line_comes_when_it_has_its_end_and_with_those_that_continue_it(follower: Follower) -> None:
    log = follower.folder / "a.log"
    append(log, "one\n  at x\nCaused by: y\ntw")
    assert follower.look() == [b"one\n  at x\nCaused by: y"]
    append(log, "o\n")
    assert follower.look(1) == []
    append(log, "\tmore\nthree\n")
    assert follower.look() == [b"two\n\tmore", b"three"]


def test_a_file_that_appears_later_is_read_whole(follower: Follower) -> None:
    (follower.folder / "b.log").write_text("first\n")
    assert follower.look() == [b"first"]


def test_what_was_written_before_and_after_a_renaming_comes_also_over_a_restart(follower: Follower) -> None:
    log = follower.folder / "a.log"
    for number, restart in enumerate((False, True)):
        append(log, f"last {number}\n")
        log.rename(follower.folder / f"a.log.{number}")
        log.write_text(f"new {number}\n")
        if restart:
            follower.start()
        assert follower.look() == [f"last {number}".encode(), f"new {number}".encode()]


@pytest.mark.parametrize("text", ["x\n", "a much longer text than what was there before it was emptied\n"])
def test_a_file_that_was_emptied_is_read_from_its_beginning(follower: Follower, text: str) -> None:
    log = follower.folder / "a.log"
    append(log, "one\n")
    follower.look()
    os.truncate(log, 0)
    append(log, text)
    assert follower.look() == [text.strip().encode()]


def test_a_line_without_end_is_divided_before_it_fills_the_memory(follower: Follower) -> None:
    append(follower.folder / "a.log", "x" * (LONGEST + 10) + "\n")
    assert [len(line) for line in follower.look()] == [LONGEST, 10]


def test_lines_come_once_and_in_order_over_random_writes_rotations_and_restarts(tmp_path: Path) -> None:
    chance, log, written = random.Random(7), tmp_path / "a.log", list[bytes]()
    log.write_text("")
    follower = Follower(tmp_path)
    for step in range(300):
        match chance.randrange(5):
            case 0 | 1:
                lines = [f"line {step} {number}" for number in range(chance.randint(1, 4))]
                append(log, "".join(f"{line}\n" for line in lines))
                written += [line.encode() for line in lines]
            case 2:
                follower.look(chance.randint(1, 2))
            case 3:
                follower.look(1)  # as often as once between two rotations, which it must see
                log.rename(tmp_path / f"a.log.{step}")
                log.write_text("")
            case 4:
                follower.start()
    follower.look(3)
    assert follower.seen == written
