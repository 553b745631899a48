"""A console's own view on a real Kafka: machines that report, those that are learned, values and bands, a restart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from pipelines.contracts.settings import Settings, load
from pipelines.query.view.followed import Followed
from tests.pipelines.query.view_topics import PARTITIONS, STEP, T0, produce, state, until, with_topics

pytestmark = pytest.mark.servers


@pytest.fixture
def mine(endpoints: Endpoints, tmp_path: Path) -> Settings:
    return with_topics(endpoints, tmp_path)


def windows(settings: Settings, entity: str, numbers: range, kind: str = "gauge") -> None:
    """Windows of one series in one message: the mean is the number of the window, the rate of a counter its tenth."""
    rows = []
    for n in numbers:
        row = {"entity": entity, "metric": "cpu", "kind": kind, "count": 1, "revision": 0}
        row |= {"window_start": T0 + n * STEP, "window_end": T0 + (n + 1) * STEP}
        row |= dict.fromkeys(("mean", "std", "min", "max", "last", "p50", "p95", "p99"), float(n))
        rows.append(row | ({"rate": n / 10} if kind == "counter" else {}))
    message = columnar.encode(pa.Table.from_pylist(rows, schema=Features.arrow_schema()), T0)
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap})
    producer.produce(settings.topic(topics.FEATURES), message, partition=crc32(entity) % PARTITIONS)
    producer.flush()


def read(view: Followed, machines: int) -> None:
    """Waits until the view knows so many machines."""

    def there() -> bool:
        try:
            return len(view.machines(100)) == machines
        except NewnormalError:
            return False

    until(there)


def test_machines_report_while_their_windows_are_new_and_are_learned_until_one_of_their_series_is_judged(
    mine: Settings,
) -> None:
    windows(mine, "web-1", range(55, 60))
    windows(mine, "web-2", range(40, 60))
    windows(mine, "gone-1", range(20))
    produce(mine, [state("web-1", "cpu", 58, "learning"), state("web-2", "cpu", 50), state("gone-1", "cpu", 9)])
    with Followed(lambda: mine, "console") as view:
        read(view, 3)
        expected = {  # gone-1 sent its last window more than five minutes before the newest
            "machines": 2,
            "learning": [{"name": "web-1", "windows": 5, "needed": 8}],
            "learning_count": 1,
            "last": T0 + 60 * STEP,
        }
        until(lambda: view.site() == expected)
        assert view.machines(100) == ["gone-1", "web-1", "web-2"]
        assert view.machines(1) == ["gone-1"]
        produce(mine, [state("web-1", "cpu", 62)])
        until(lambda: view.site()["learning"] == [])
    with Followed(lambda: mine, "console") as again:
        read(again, 3)
        assert again.site()["machines"] == 2
        assert again.series("web-1", "cpu")["windows"][-1]["mean"] == 59.0


def test_a_quiet_window_has_the_band_that_was_last_said_before_it_and_the_kind_of_its_metric(mine: Settings) -> None:
    windows(mine, "web-1", range(6), "counter")
    first = state("web-1", "cpu", 1, "learning") | {"typical": 1.0, "lower": 0.0, "upper": 2.0}
    second = state("web-1", "cpu", 4) | {"typical": 3.0, "lower": 2.0, "upper": 4.0}
    produce(mine, [first, second])
    with Followed(lambda: mine, "console") as view:
        read(view, 1)
        until(lambda: (view.series("web-1", "cpu")["state"] or {}).get("values") == 4)
        (series,) = view.machine("web-1", 10)
        shown = [(each.get("lower"), each.get("upper"), each.get("kind")) for each in series["windows"]]
        quiet, learned = (2.0, 4.0, "normal"), (0.0, 2.0, "learning")
        assert shown == [(None, None, None), learned, learned, learned, quiet, quiet]
        assert {each["metric_kind"] for each in series["windows"]} == {"counter"}
        assert (series["windows"][-1]["rate"], series["state"], series["needed"]) == (0.5, second, 8)
        assert view.machine("nobody", 10) == []


def test_as_long_as_the_topics_are_missing_the_reason_is_told_and_then_they_are_read(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    settings = [load(namespace="missing.", state_dir=tmp_path, **{"kafka.bootstrap": endpoints.bootstrap})]
    with Followed(lambda: settings[0], "console") as view:

        def refused() -> bool:
            with pytest.raises(NewnormalError) as error:
                view.site()
            return error.value.code == "TOPIC_UNKNOWN"

        until(refused)
        settings[0] = with_topics(endpoints, tmp_path)
        windows(settings[0], "web-1", range(1))
        read(view, 1)
