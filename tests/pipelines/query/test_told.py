"""What was told to whom is kept in two files whose size is bounded."""

from __future__ import annotations

from pathlib import Path

from pipelines.query.told import SentMessage, ToldFiles


def told(number: int) -> SentMessage:
    return SentMessage(1_000 + number, "night", "opened", f"[major] opened: vm-{number}", (f"i{number}",))


def test_what_was_told_is_read_while_it_is_written_and_by_another_process(tmp_path: Path) -> None:
    folder = tmp_path / "default"
    assert ToldFiles(folder).read() == []
    writer = ToldFiles(folder)
    for number in range(3):
        writer.add(told(number))
        assert ToldFiles(folder).read()[-1] == told(number)


def test_the_newest_are_kept_and_the_files_do_not_grow_without_bound(tmp_path: Path) -> None:
    files = ToldFiles(tmp_path / "default", full=2_000)
    for number in range(500):
        files.add(told(number))
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert size <= 2 * (2_000 + len(str(told(0))))
    kept = files.read()
    assert kept == [told(number) for number in range(500 - len(kept), 500)]
    assert len(kept) > 10


def test_a_line_that_a_crash_has_cut_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "default"
    ToldFiles(folder).add(told(1))
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: len(whole) // 2])
    assert ToldFiles(folder).read() == [told(1)]
