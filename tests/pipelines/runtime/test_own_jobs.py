"""Files with a user's own jobs: the jobs found in them, and the errors for files that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import Job
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.runtime.own_jobs import load_jobs
from tests.integration.own_jobs import NAMES, examples

HEAD = """from engine import Count, Instant, Record, Stream, Tumbling

class Word(Record):
    time: Instant
    word: str

"""
COUNTS = 'words = Stream.read_json("words", Word).key_by("word").window(Tumbling("10s")).aggregate(n=Count())'


def written(folder: Path, name: str, code: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(code)
    return str(path)


@pytest.mark.parametrize("name", NAMES)
def test_each_example_of_the_page_is_a_job_or_two_of_at_most_15_lines_each(
    name: str, tmp_path: Path, settings: Settings
) -> None:
    code = examples()[name]
    program = load_jobs([written(tmp_path, f"page_{name}", code)])
    assert len(program.names) == (2 if name == "enrichment" else 1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 15 * len(program.names)
    assert isinstance(program.job(program.names[0], settings), Job)


def test_a_file_gives_all_its_jobs_or_the_one_that_is_named_by_variable_or_by_job(tmp_path: Path) -> None:
    jobs = f'{HEAD}{COUNTS}\na = words.write("one")\nb = words.write("two")\nagain = a\n'
    path = written(tmp_path, "several_jobs", jobs)
    assert load_jobs([path]).names == ("one", "two")
    assert load_jobs([f"{path}:b"]).names == ("two",)
    assert load_jobs([f"{path}:one"]).names == ("one",)
    with pytest.raises(NewnormalError, match="JOBS_FILE") as refused:
        load_jobs([f"{path}:c"])
    assert refused.value.accepted == "a, b"


def test_what_is_built_wrong_in_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = written(
        tmp_path, "built_wrong", f"{HEAD}{COUNTS.replace(chr(34) + 'word' + chr(34), chr(34) + 'wrod' + chr(34))}\n"
    )
    with pytest.raises(NewnormalError) as refused:
        load_jobs([path])
    assert refused.value.code == "COLUMN_UNKNOWN"
    assert refused.value.where == "key_by(), built_wrong.py:7"
    assert refused.value.now == "nothing was started"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("no_job", HEAD, "there is no job"),
        ("syntax", "a = (\n", "SyntaxError"),
        ("raises", "a = 1\nb = a / 0\n", "ZeroDivisionError"),
        ("json", HEAD, "installed already"),
        ("not-a-name", HEAD, "not a module name"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(name: str, code: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match="JOBS_FILE") as refused:
        load_jobs([written(tmp_path, name, code)])
    assert said in refused.value.what
    assert name in refused.value.where


def test_a_job_named_as_one_of_the_chain_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match="JOBS_FILE"):
        load_jobs([written(tmp_path, "like_ours", f'{HEAD}{COUNTS}\na = words.write("extractor")\n')])
    with pytest.raises(NewnormalError, match="JOB_TWICE"):
        load_jobs(
            [
                written(
                    tmp_path, "twice", f'{HEAD}{COUNTS}\na = words.write("c")\nb = words.filter("n > 1").write("c")\n'
                )
            ]
        )


def test_other_windows_than_those_of_the_state_are_refused_and_other_aggregates_are_not(
    tmp_path: Path, settings: Settings
) -> None:
    def start(name: str, code: str) -> None:
        program = load_jobs([written(tmp_path, name, f'{HEAD}{code}.write("counts")\n'.replace("words =", "w = ", 1))])
        program.check(program.names, settings, tmp_path / "checkpoints")

    start("first", COUNTS)
    (tmp_path / "checkpoints" / "counts" / "metadata").write_text("{}")
    start("second", COUNTS.replace("n=Count()", "n=Count(), m=Count()"))
    with pytest.raises(NewnormalError, match="JOB_CHANGED") as refused:
        start("third", COUNTS.replace("10s", "20s"))
    assert "20s" in refused.value.what
    assert "10s" in refused.value.what


@pytest.mark.parametrize("place", ["models.py", "models/__init__.py"])
@pytest.mark.parametrize("code", ["import models", "from models import MINE", "import {helper}"])
def test_a_module_beside_the_file_that_has_the_name_of_an_installed_one_is_refused(
    place: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / place).write_text("MINE = 1\n")
    helper, name = (f"{kind}_{len(code)}_{len(place)}" for kind in ("helper", "beside"))  # modules stay imported
    written(tmp_path, helper, "from models import MINE\n")
    code = f'{code.format(helper=helper)}\n{HEAD}{COUNTS}\njob = words.write("one")\n'
    path = written(tmp_path, name, code)
    with pytest.raises(NewnormalError, match="JOBS_FILE") as refused:
        load_jobs([path])
    assert str(tmp_path / place) in refused.value.what
    assert refused.value.accepted == f"another name for {tmp_path / place}"


def test_a_module_beside_the_file_with_a_name_of_its_own_is_imported(tmp_path: Path) -> None:
    written(tmp_path, "topics_of_mine", 'NAME = "mine"\n')
    code = f"from topics_of_mine import NAME\n{HEAD}{COUNTS}\njob = words.write(NAME)\n"
    assert load_jobs([written(tmp_path, "with_topics_of_mine", code)]).names == ("mine",)
