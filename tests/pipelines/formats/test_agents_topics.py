"""The jobs take all formats from the topics `telemetry.agents` and `logs.agents`, mixed, by the user's settings."""

from __future__ import annotations

import pickle

import orjson
import pyarrow as pa
import pytest

from engine.runtime import intake
from engine.runtime.intake import KAFKA, Intake
from pipelines.contracts.records import Log, Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.formats.catalogue import FORMATS, guess
from pipelines.jobs.chain import JOBS
from tests.pipelines.formats.examples import GOOD
from tests.pipelines.formats.examples_times import T0

JOB_OF = {Telemetry: ("normalizer", "telemetry.agents"), Log: ("log_normalizer", "logs.agents")}


def read(job: str, topic: str, values: list[bytes], settings: Settings) -> Intake:
    """What the job takes from messages of a topic, after a trip to another process as Spark makes it."""
    rows = [
        {"value": value, "topic": topic, "partition": 0, "offset": at, "arrived": T0 + 7 * 86_400_000}
        for at, value in enumerate(values)
    ]
    made = pickle.loads(pickle.dumps(JOBS[job](settings)))
    return intake.read(made, [pa.Table.from_pylist(rows, KAFKA)])


@pytest.mark.parametrize("record", [Telemetry, Log])
def test_a_topic_of_agents_takes_all_formats_mixed(record: type[Telemetry] | type[Log]) -> None:
    job, topic = JOB_OF[record]
    values = [good for form in FORMATS if form.record is record for good in GOOD[form.name]]
    found = read(job, topic, [*values, b"what is this?"], load(**{"input.default_machine": "edge"}))
    letters = [orjson.loads(letter) for letter in found.dead]
    unknown = [letter for letter in letters if letter["error.code"] == "FORMAT_UNKNOWN"]
    assert [letter["kafka.offset"] for letter in unknown] == [len(values)]
    refused = {letter["kafka.offset"] for letter in letters}
    assert {values[at] for at in refused - {len(values)}} <= set(GOOD["influx"]), (
        "text beside numbers, and nothing else"
    )
    (table,) = found.records
    assert table.num_rows >= len(values)


def test_the_settings_say_which_label_names_the_machine() -> None:
    line = b"cpu,server=s1,host=a usage=1 1795220820013"
    settings = load(**{"input.machine": "server", "input.left_out": "host"})
    (table,) = read("normalizer", "telemetry.agents", [line], settings).records
    assert [(row["entity"], row["metric"]) for row in table.to_pylist()] == [("s1", "cpu.usage")]
    (table,) = read("normalizer", "telemetry.agents", [line], load()).records
    assert [(row["entity"], row["metric"]) for row in table.to_pylist()] == [("a", "cpu.usage{server=s1}")]


def test_a_message_of_another_kind_is_told_its_topic() -> None:
    assert guess(GOOD["syslog"][0], Telemetry) is None
    (letter,) = read("normalizer", "telemetry.agents", GOOD["syslog"][:1], load()).dead
    assert "logs.agents" in orjson.loads(letter)["error.message"]
