"""The chain is what the jobs do: the table names the topics that each job reads and writes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.jobs.chain import JOBS
from pipelines.jobs.links import CHAIN, LINKS, TOPICS
from pipelines.query.tables import COLUMNAR


@pytest.mark.parametrize("name", JOBS)
def test_a_job_reads_and_writes_what_the_table_says(name: str) -> None:
    settings, link = load(namespace="n."), LINKS[name]
    job = JOBS[name](settings)
    assert job.name == name
    assert sorted(job.topics) == sorted(link.reads(settings))
    written = [job.output, *(side.output for side in job.side), *([job.late] if job.late else [])]
    assert [output.topic for output in written] == [settings.topic(t) for t in link.outputs]
    assert job.dead.topic == settings.topic(topics.DEADLETTER)


def test_each_topic_has_one_place_in_the_chain() -> None:
    assert set(TOPICS) == set(topics.NAMES)
    written = {name for link in CHAIN for name in link.outputs}
    outside = {*topics.FROM_AGENTS, *topics.FROM_OPERATORS}
    read = {name for link in CHAIN for name in link.inputs}
    assert read - written == outside - {topics.CHANGES}, "what no job writes comes from outside, and changes do, too"
    unread = {name for name in written if name.endswith(".late")} | {topics.STATE}
    assert written - read == unread, "what no job reads is late records, and beliefs for the state view"


def test_sql_and_tail_know_the_records_of_each_columnar_topic() -> None:
    settings = load()
    jobs = [build(settings) for build in JOBS.values()]
    outputs = [output for job in jobs for output in job.outputs if output.format == "columnar"]
    assert {output.topic: output.record for output in outputs} == COLUMNAR


def test_a_job_stands_after_those_whose_topics_it_reads() -> None:
    """The order in which jobs are started and shown is that of the data."""
    known = {*topics.FROM_AGENTS, *topics.FROM_OPERATORS}
    for link in CHAIN:
        assert set(link.inputs) <= known, link.name
        known |= set(link.outputs)


def test_each_job_that_writes_topics_is_built_and_no_other() -> None:
    assert set(JOBS) == {link.name for link in CHAIN if link.outputs}


@pytest.mark.parametrize("command", ["notify", "view", "gateway", "console"])
def test_a_process_that_runs_no_job_does_not_hold_the_models(command: str) -> None:
    """Numba alone takes 60 MB, and a second until it is loaded."""
    modules = {
        "notify": "pipelines.notify.running",
        "view": "pipelines.query.view.serving",
        "gateway": "pipelines.gateway.serving",
        "console": "pipelines.versions.registry",
    }
    code = f"import sys, pipelines.cli.{command}, {modules[command]}; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
