"""Each shard writes its own output, each micro-batch once, whoever repeats it: on a real Kafka."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException

from deploy.embedded.endpoints import Endpoints
from engine.kafka import shard_output
from engine.kafka.admin import ensure_topics
from engine.kafka.content import values
from engine.kafka.continuation import check
from engine.kafka.exactly_once import _FENCED, Shard, TransactionalWriter
from engine.kafka.shard_output import Claim, Place, claim, write
from engine.runtime.messages import Outgoing
from engine.runtime.shard import STATS
from engine.spec.errors import NewnormalError

pytestmark = pytest.mark.servers
SHARDS = 2


class Site:
    """A job with two shards, whose messages say which micro-batch and shard they are of."""

    def __init__(self, bootstrap: str) -> None:
        self.owner = f"s{uuid4().hex[:8]}."
        self.out, ledger = self.owner + "out", self.owner + "ledger"
        self.place = Place(bootstrap, self.owner + "job", ledger)
        ensure_topics(bootstrap, {self.out: {}, ledger: {}}, partitions=SHARDS)

    def claim(self, shards: int = SHARDS, checkpoint: str = "c") -> Claim:
        """A driver begins; one that writes itself has no shards that write."""
        return claim(self.place, checkpoint, shards, threading.Event())

    def messages(self, batch: int, shard: int) -> list[Outgoing]:
        return [Outgoing.of(self.out, shard, [f"{batch}/{shard}".encode()])]

    def task(self, driver: Claim, batch: int, shard: int, again: bool = False) -> bool:
        """A task writes; ``again``: in another process, which has no writer yet."""
        if again:
            shard_output._kept.clear()
        return write(self.place, driver.assignment(batch), shard, self.messages(batch, shard))

    def by_driver(self, driver: Claim, batch: int) -> None:
        """A driver writes the output of all shards, as far as it is missing."""
        writer = self.place.writer(driver.checkpoint)
        every = [
            some for n in range(SHARDS) for some in (*self.messages(batch, n), Outgoing.of(STATS, n, [b"statistics"]))
        ]
        writer.write(batch, driver.missing(batch, every))
        writer.close()

    def content(self) -> list[str]:
        return sorted(value.decode() for value in values(self.place.bootstrap, self.out))


@pytest.fixture
def site(endpoints: Endpoints) -> Iterator[Site]:
    yield Site(endpoints.bootstrap)
    for _, writer in shard_output._kept.values():
        writer.close()
    shard_output._kept.clear()


def test_a_micro_batch_that_half_of_the_shards_have_written_is_completed_by_the_others(site: Site) -> None:
    driver = site.claim()
    assert site.task(driver, 0, 0) and site.task(driver, 0, 1)
    assert site.task(driver, 1, 0)
    assert site.content() == ["0/0", "0/1", "1/0"]
    repeated = site.claim()
    assert not site.task(repeated, 1, 0, again=True), "written before the crash"
    assert site.task(repeated, 1, 1, again=True)
    assert site.content() == ["0/0", "0/1", "1/0", "1/1"]


def test_shards_may_move_between_processes(site: Site) -> None:
    driver = site.claim()
    assert site.task(driver, 0, 0)
    here = dict(shard_output._kept)
    assert site.task(driver, 1, 0, again=True), "another process"
    shard_output._kept.clear()
    shard_output._kept.update(here)
    assert not site.task(driver, 1, 0), "a late attempt of the same task, in the first process"
    assert site.task(driver, 2, 0)
    assert site.content() == ["0/0", "1/0", "2/0"]


def test_an_attempt_that_is_overtaken_while_its_transaction_is_open_writes_nothing(site: Site) -> None:
    driver = site.claim()
    shard = Shard(0, driver.generation)
    zombie = site.place.writer("c", shard=shard)
    zombie.write(0, site.messages(0, 0))
    connection = zombie._connection
    assert connection is not None

    def overtaken() -> Iterator[Outgoing]:
        """Its transaction is open when the second attempt writes the micro-batch from another process."""
        yield Outgoing.of(site.out, 0, [b"from a zombie"])
        connection._flush()
        assert site.task(driver, 1, 0, again=True)

    with pytest.raises(KafkaException) as refused:
        connection.write(1, overtaken())  # type: ignore[arg-type]
    assert refused.value.args[0].code() in _FENCED
    assert not zombie.write(1, site.messages(1, 0)), "it begins anew, and finds the micro-batch written"
    zombie.close()
    assert site.content() == ["0/0", "1/0"]


def test_tasks_of_a_driver_that_was_replaced_are_refused_with_and_without_a_writer(site: Site) -> None:
    old = site.claim()
    assert site.task(old, 0, 0)
    new = site.claim()
    assert new.generation > old.generation
    for again, shard in ((False, 0), (True, 0), (True, 1)):
        with pytest.raises(NewnormalError, match="JOB_FENCED"):
            site.task(old, 1, shard, again)
    assert site.task(new, 1, 0, again=True) and site.task(new, 1, 1, again=True)
    assert site.content() == ["0/0", "1/0", "1/1"]


def test_tasks_of_a_driver_are_refused_by_one_of_another_checkpoint_with_fewer_shards(site: Site) -> None:
    """A restored savepoint has an identity of its own, and perhaps another number of shards."""
    old = site.claim()
    assert site.task(old, 0, 0) and site.task(old, 0, 1)
    new = site.claim(shards=1, checkpoint="restored")
    with pytest.raises(NewnormalError, match="JOB_FENCED"):
        site.task(old, 1, 1)
    assert site.task(new, 0, 0, again=True), "its numbers are its own"
    assert site.content() == ["0/0", "0/0", "0/1"]


def test_whoever_wrote_before_the_other_goes_on_where_it_ended(site: Site) -> None:
    driver = site.claim(shards=0)
    site.by_driver(driver, 0)
    site.by_driver(driver, 1)
    shards = site.claim()
    assert not site.task(shards, 1, 0), "the driver wrote it for all shards"
    assert site.task(shards, 2, 0) and site.task(shards, 2, 1) and site.task(shards, 3, 1)
    back = site.claim(shards=0)
    with pytest.raises(NewnormalError, match="JOB_FENCED"):
        site.task(shards, 3, 0)
    site.by_driver(back, 3)
    site.by_driver(back, 4)
    assert site.content() == [f"{batch}/{shard}" for batch in range(5) for shard in range(SHARDS)]


def test_a_checkpoint_that_is_older_than_the_output_of_one_shard_is_refused_and_set_back_if_asked(
    site: Site, tmp_path: Path
) -> None:
    def start(write_again: bool = False) -> None:
        check(site.place.bootstrap, site.owner, site.place.ledger, tmp_path, {"job": [site.out]}, write_again)

    driver = site.claim()
    for batch in range(3):
        site.task(driver, batch, 0)
    site.task(driver, 0, 1)
    with pytest.raises(NewnormalError, match="CHECKPOINT_MISSING"):
        start()
    (tmp_path / "job" / "offsets").mkdir(parents=True)
    (tmp_path / "job" / "metadata").write_text(json.dumps({"id": "c"}))
    (tmp_path / "job" / "offsets" / "0").write_text("v1")
    with pytest.raises(NewnormalError, match="job has written micro-batch 2, its checkpoint ends with 0"):
        start()
    start(write_again=True)
    start()
    again = site.claim()
    assert site.task(again, 1, 0, again=True), "asked for a second time"
    assert not site.task(again, 0, 0) and not site.task(again, 0, 1), "both shards know what came before"


def test_jobs_that_never_wrote_by_shards_have_no_generation(site: Site) -> None:
    assert site.claim(shards=0).generation == -1
    writer = TransactionalWriter(site.place.bootstrap, site.place.job, site.place.ledger, "c")
    assert writer.write(0, site.messages(0, 0))
    writer.close()
    assert site.claim(shards=0) == Claim("c", -1, 0, {})
