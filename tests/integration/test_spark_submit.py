"""`engine.run` in a file that is given to `spark-submit`, as docs/own-jobs.md says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from deploy.artifacts import spark_jars
from deploy.embedded.endpoints import Endpoints
from deploy.java import java_home
from engine import run
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.runtime.own_jobs import load_jobs
from tests.integration.own_jobs import PAGE, examples, feed, hour_ago, pass_time, read, some_words

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
SECONDS = 200


def written(folder: Path, bootstrap: str) -> Path:
    """The page's word count with the lines that run it, on topics and a state of its own; `Word` in another module."""
    section = PAGE.read_text().partition("## From Python")[2]
    lines = re.search(r"\n((?:    .*\n|\n)+?)\nand give", section)
    assert lines is not None
    calling = "".join(line.removeprefix("    ") for line in lines[1].splitlines(keepends=True))
    code = examples()["word_count"] + calling
    file = folder / "submitted_words.py"
    own = {'"words"': '"submitted.words"', '"counts"': '"submitted.counts"', "localhost:9092": bootstrap}
    for found, wanted in (own | {'state="state"': f'state="{folder / "state"}"'}).items():
        assert found in code
        code = code.replace(found, wanted)
    head, record, rest = re.split(r"(class Word\(Record\):\n(?:    .*\n)+)", code)
    (folder / "others").mkdir()
    (folder / "others" / "submitted_records.py").write_text(f"from engine import Instant, Record\n\n\n{record}")
    file.write_text(f"{head}from submitted_records import Word\n{rest}")
    return file


def test_the_word_count_runs_under_spark_submit_and_nobody_else_may_run_it_meanwhile(
    endpoints: Endpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "others"))
    bootstrap, begin, log = endpoints.bootstrap, hour_ago(), tmp_path / "log"
    file, words = written(tmp_path, endpoints.bootstrap), some_words(2_000, hour_ago())
    ensure_topics(bootstrap, {"submitted.words": {}}, 2)
    feed(bootstrap, "submitted.words", words)
    pass_time(bootstrap, "submitted.words", {"time": begin + 400_000, "word": "end"}, 2)
    (job,) = load_jobs([str(file)])._jobs.values()
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]"]
    command += ["--jars", ",".join(map(str, spark_jars()))]
    command += ["--py-files", str(tmp_path / "others" / "submitted_records.py"), str(file)]
    given = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=os.environ | given, cwd=tmp_path, stdout=out, stderr=out, start_new_session=True
        )
    try:
        deadline = time.monotonic() + SECONDS
        while sum(row["n"] for row in read(bootstrap, "submitted.counts")) < len(words):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-6000:]
            time.sleep(0.5)
        with pytest.raises(NewnormalError, match=r"ALREADY_RUNNING: submitted\.counts runs in process"):
            run(job, kafka=bootstrap, state=tmp_path / "state")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C: Spark's JVM and the program get it
        process.wait(60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    counts = read(bootstrap, "submitted.counts")
    expected = Counter((row["word"], row["time"] // 10_000 * 10_000) for row, _ in words)
    assert Counter({(row["word"], row["window_start"]): row["n"] for row in counts}) == expected
    assert len(counts) == len(expected), "each window of each word once"
    with pytest.raises(NewnormalError, match="SHARDS_FIXED"):
        run(job, kafka=bootstrap, state=tmp_path / "state", shards=3)
    assert load(state_dir=tmp_path / "state").folder("checkpoints").joinpath("submitted.counts", "metadata").exists()
