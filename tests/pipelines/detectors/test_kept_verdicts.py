"""Verdicts that are kept: found again in their order, whether divided by machine or not, in any number of shards."""

from __future__ import annotations

import polars as pl
import pytest

from engine.columns.partitioning import slots
from engine.state.rescaling import Rescaling
from engine.state.segments import DictSegments, ShardState
from pipelines.jobs.detectors.kept_verdicts import KeptVerdicts

NEVER = 10**9
MACHINES = [f"m{number}" for number in range(40)]


def verdicts(machines: list[str], end: int, revision: int) -> pl.DataFrame:
    frame = pl.DataFrame({"entity": machines}).with_columns(metric=pl.lit("cpu"))
    return frame.with_columns(window_end=pl.lit(end, pl.Int64), revision=pl.lit(revision, pl.Int64))


def filled(shards: int, many: tuple[int, ...]) -> list[ShardState]:
    """Thirty windows of all machines, each in its shard; each tenth window of some is revised twice."""
    states = [ShardState(DictSegments()) for _ in range(shards)]
    for end in range(30):
        for state, mine, limit in zip(states, of_shards(shards), many, strict=True):
            KeptVerdicts(state, limit).add(verdicts(mine, end, 0))
            for revision in (1, 2) if end % 10 == 9 else ():
                KeptVerdicts(state, limit).add(verdicts(mine[:3], end - 5, revision))
    return states


def of_shards(shards: int) -> list[list[str]]:
    slot = slots(pl.Series(MACHINES), shards)
    return [[name for name, its in zip(MACHINES, slot, strict=True) if its == shard] for shard in range(shards)]


def revised(shards: int) -> set[str]:
    return {name for mine in of_shards(shards) for name in mine[:3]}


@pytest.mark.parametrize("after", [1, 2, 3, 6])
@pytest.mark.parametrize("many", [(NEVER, NEVER, NEVER), (7, NEVER, 60), (1, 1, 1)], ids=["whole", "mixed", "divided"])
def test_each_machine_has_its_verdicts_in_their_order_in_any_number_of_shards(
    many: tuple[int, ...], after: int
) -> None:
    before, states = filled(3, many), [ShardState(DictSegments()) for _ in range(after)]
    KeptVerdicts.rescale(Rescaling(before, states, "entity"))
    for state, mine in zip(states, of_shards(after), strict=True):
        for machine in mine:
            parts = KeptVerdicts(state).since(11, pl.DataFrame({"entity": [machine], "metric": ["cpu"]}))
            found = pl.concat(parts).filter(entity=machine).filter(pl.col("window_end") > 11)
            last = found.unique(["window_end"], keep="last", maintain_order=True).sort("window_end")
            told = {end: 2 if machine in revised(3) and end in (14, 24) else 0 for end in range(12, 30)}
            assert dict(last.select("window_end", "revision").rows()) == told
        assert set(pl.concat([*KeptVerdicts(state).since(-1, verdicts(mine, 0, 0))])["entity"]) == set(mine)


def test_what_is_old_is_forgotten_and_dropping_leaves_nothing() -> None:
    (state,) = filled(1, (100,))
    KeptVerdicts(state).forget(20)
    left = pl.concat([*KeptVerdicts(state).since(-1, verdicts(MACHINES, 0, 0))])
    assert set(range(21, 30)) <= set(left["window_end"])
    assert left["window_end"].to_numpy().min() > 15
    KeptVerdicts(state).drop()
    assert not state.sizes
    assert not state.notes


def test_a_small_micro_batch_costs_a_small_site_and_a_large_one_the_same() -> None:
    (small,), (large,) = filled(1, (NEVER,)), filled(1, (41,))
    written = []
    for state, many in ((small, NEVER), (large, 41)):
        before = set(state.sizes)
        KeptVerdicts(state, many).add(verdicts(MACHINES[:2], 30, 0))
        written.append(len(set(state.sizes) - before))
    assert written == [1, 1]
