"""The chain is what the jobs do: the table names the topics that each job reads and writes."""

from __future__ import annotations

import pytest

from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.jobs.chain import CHAIN, TOPICS, Link
from pipelines.query.tables import COLUMNAR


@pytest.mark.parametrize("link", [link for link in CHAIN if link.build], ids=lambda link: link.name)
def test_a_job_reads_and_writes_what_the_table_says(link: Link) -> None:
    settings = load(namespace="n.")
    assert link.build is not None
    job = link.build(settings)
    assert job.name == link.name
    assert sorted(job.topics) == sorted(link.reads(settings))
    written = [job.output, *(side.output for side in job.side), *([job.late] if job.late else [])]
    assert [output.topic for output in written] == [settings.topic(t) for t in link.outputs]
    assert job.dead.topic == settings.topic(topics.DEADLETTER)


def test_each_topic_has_one_place_in_the_chain() -> None:
    assert set(TOPICS) == set(topics.NAMES)
    written = {name for link in CHAIN for name in link.outputs}
    outside = {*topics.FROM_AGENTS, *topics.FROM_OPERATORS}
    read = {name for link in CHAIN for name in link.inputs}
    assert read - written == outside, "what no job writes comes from outside"
    unread = {name for name in written if name.endswith(".late")} | {topics.STATE}
    assert written - read == unread, "what no job reads is late records, and beliefs for the state view"


def test_sql_and_tail_know_the_records_of_each_columnar_topic() -> None:
    settings = load()
    jobs = [link.build(settings) for link in CHAIN if link.build]
    outputs = [output for job in jobs for output in job.outputs if output.format == "columnar"]
    assert {output.topic: output.record for output in outputs} == COLUMNAR


def test_a_job_stands_after_those_whose_topics_it_reads() -> None:
    """The order in which jobs are started and shown is that of the data."""
    known = {*topics.FROM_AGENTS, *topics.FROM_OPERATORS}
    for link in CHAIN:
        assert set(link.inputs) <= known, link.name
        known |= set(link.outputs)
