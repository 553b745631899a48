"""Each operator goes on in another number of shards as if it had always had it.

Half of the input of each transcript runs in one number of shards, the rest in another; what is written is what the
transcript says.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.operators.chain import Chain
from engine.runtime.rescale import rescaled
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.operator import Operator
from engine.state.segments import DictSegments
from engine.testing import Run, TestStream
from engine.testing.driven import Driven
from engine.testing.encoding import fed_columns
from engine.vectorized.build import build
from engine.windows import Tumbling
from tests import transcripts
from tests.engine.panes import event
from tests.engine.panes import job as job_of
from tests.transcripts import scenarios as windows
from tests.transcripts.operators import reader as operators
from tests.transcripts.test_transcripts import assert_fired

T0 = 1_700_000_000_000
FOLDER = Path(transcripts.__file__).parent
EVERY = 4
"""Of the transcripts of windows every fourth is enough: each kind of window and trigger has several."""
WINDOWS = {s.name: s for s in [s for s in windows.scenarios(FOLDER) if len(s.stream.batches) > 2][::EVERY]}
OPERATORS = {
    s.name: s
    for s in operators.scenarios(FOLDER / "operators" / "operators.yaml")
    if len(s.stream.batches) > 2 and not s.name.endswith(operators.KILLED)
}


def run(job: Job, stream: TestStream, before: int, after: int, at: int | None = None) -> Run:
    """Runs a job in ``before`` shards up to micro-batch ``at`` (half of the stream), and then in ``after`` shards."""
    job, batches = fed_columns(job), [batch.entries for batch in stream.batches]
    half = len(batches) // 2 if at is None else at
    first = Driven(job, before).run(batches[:half])
    states = [DictSegments() for _ in range(after)]
    segments = rescaled(job, [state.values for state in first.states], after)
    for state, values in zip(states, segments, strict=True):
        state.values = values
    second = Driven(job, after, states, offset=first.offset).run(batches[half:])
    return Run(written=[*first.written, *second.written])


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_go_on_in_other_shards(name: str) -> None:
    scenario = WINDOWS[name]
    got = run(scenario.job, scenario.stream, 2, 3)
    assert_fired(got, scenario)
    assert sorted(map(repr, got.late)) == sorted(map(repr, scenario.late))


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_go_on_in_other_shards(name: str) -> None:
    scenario = OPERATORS[name]
    got = run(scenario.job, scenario.stream, 3, 2)
    assert scenario.fired(got) == scenario.firings
    assert operators.shown_late(got) == scenario.late


def _parts(operator: Operator) -> set[type]:
    inner = operator.parts if isinstance(operator, Chain) else ()
    return {type(operator)} | {kind for part in inner for kind in _parts(part)}


def test_every_operator_of_the_engine_is_tested_here() -> None:
    """A new operator fails here until a transcript of it runs above."""
    tested = {kind for s in (*WINDOWS.values(), *OPERATORS.values()) for kind in _parts(s.job.processor)}
    own = {kind for kind in build.registry if kind.__module__.startswith("engine.operators")}
    assert len(own) >= 12
    assert own - tested == set()


def test_shards_with_other_watermarks_do_not_become_one() -> None:
    """Windows of one would fire again, or records of the other would be too late."""
    stream = TestStream(T0, partitions=4).add(event("a", T0, 1.0))
    stream = stream.advance_watermark("10s", partition=0).advance_watermark("10s", partition=2)
    job = job_of(Tumbling("10s"))
    direct = replace(job, inputs=(replace(job.inputs[0], partitions=4),))
    assert direct.direct(2)
    driven = Driven(direct, 2).run([batch.entries for batch in stream.batches])
    states = [state.values for state in driven.states]
    with pytest.raises(NewnormalError) as error:
        rescaled(direct, states, 1)
    assert error.value.code == "SHARDS_APART"
    assert len(rescaled(direct, states, 4)) == 4, "a shard that is divided has one watermark"
