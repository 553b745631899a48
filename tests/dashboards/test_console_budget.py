"""The alarm budget: what was promised and what labels say, asked of a real Elasticsearch and counted again here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Promises, Store, budget_store, create_app
from dashboards.console.budget import Labelled, last_labels
from deploy.embedded.endpoints import Endpoints
from engine.spec.errors import NewnormalError
from pipelines.contracts.records.incident import AffectedSeries
from tests.dashboards.console_documents import DAY, END, WINDOW, incident, novelty, stored_site

MINUTE = 60_000
PROMISES = Promises(2.0, 1.0)


def row(entity: str, metric: str, since: int, **more: Any) -> AffectedSeries:
    said = {"entity": entity, "metric": metric, "since": since, "reported": since + WINDOW, "record_score": 80}
    return AffectedSeries(**{**said, "kind": "anomaly", "change": "3 × the usual", "end": since + MINUTE, **more})


def of(identity: str, start: int, *series: AffectedSeries, **more: Any) -> Any:
    machines = list(dict.fromkeys(each.entity for each in series))
    over = {"end": start + 5 * MINUTE, "open_series": 0} if more.get("status", "resolved") == "resolved" else {}
    return incident(
        identity, more.pop("status", "resolved"), 60, machines, start=start, series=[*series], **over, **more
    )


def label(entity: str, metric: str, start: int, verdict: str, given: int, **more: Any) -> dict[str, Any]:
    return {
        "host.name": entity,
        "metric": metric,
        "event.start": start,
        "verdict": verdict,
        "event.created": given,
        **more,
    }


NIGHT, WEEK_AGO = END - 3 * DAY, END - 7 * DAY
INCIDENTS = [
    of("long ago", END - 40 * DAY, row("a", "cpu", END - 40 * DAY)),
    of("false", NIGHT, row("a", "cpu", NIGHT), row("a", "net", NIGHT + MINUTE)),
    of("twice false", WEEK_AGO, row("b", "cpu", WEEK_AGO), row("c", "cpu", WEEK_AGO)),
    of("right after all", WEEK_AGO + 60 * MINUTE, row("b", "cpu", WEEK_AGO + 60 * MINUTE)),
    of("one right", NIGHT + 60 * MINUTE, row("d", "cpu", NIGHT + 60 * MINUTE), row("d", "net", NIGHT + 60 * MINUTE)),
    of("not labelled", NIGHT, row("e", "cpu", NIGHT)),
    of("its later coming", NIGHT, row("f", "cpu", NIGHT, end=None, times=3), status="open"),
    of("whole machine", NIGHT, row("g", "cpu", NIGHT)),
    of("a part", NIGHT, row("a", "cpu", NIGHT), status="merged", merged_into="false"),
]
LABELS = [
    label("a", "cpu", END - 40 * DAY, "false_alarm", END - 39 * DAY),
    label("a", "cpu", NIGHT, "false_alarm", END - DAY),
    label("b", "cpu", WEEK_AGO, "false_alarm", END - DAY), label("c", "cpu", WEEK_AGO, "false_alarm", END - DAY),
    label("c", "cpu", WEEK_AGO - DAY, "false_alarm", END - DAY),  # it was no incident
    label("b", "cpu", WEEK_AGO + 60 * MINUTE, "true", END - MINUTE),
    label("b", "cpu", WEEK_AGO + 60 * MINUTE, "false_alarm", END - DAY),  # she has changed her mind
    label("d", "cpu", NIGHT + 60 * MINUTE, "false_alarm", END - DAY),
    label("d", "net", NIGHT + 60 * MINUTE, "true", END - DAY),
    label("e", "cpu", NIGHT - DAY, "false_alarm", END - DAY),  # the machine and metric of an incident, not its time
    label("e", "net", NIGHT, "false_alarm", END - DAY),  # its time, another metric
    label("f", "cpu", END - DAY, "false_alarm", END - DAY),
    label("g", "_machine", NIGHT - MINUTE, "false_alarm", END, **{"event.end": NIGHT + MINUTE}),
]  # fmt: skip
FALSE = {"false", "twice false", "its later coming", "whole machine"}
"""Which incidents of the last 28 days labels say to be false; of the others some have a label of another kind."""

LABELLED = FALSE | {"right after all", "one right"}


class Topics:
    """The labels as they are read; `tests.pipelines.query.test_operator` reads them from a real Kafka."""

    def __init__(self, labels: list[dict[str, Any]], broken: str = "") -> None:
        self.labels, self.broken = labels, broken

    def in_force(self) -> dict[str, list[dict[str, Any]]]:
        if self.broken:
            raise NewnormalError(self.broken, "no broker answers", "127.0.0.1:9")
        return {"rules": [], "labels": self.labels, "placements": []}


def status() -> dict[str, Any]:
    return {"jobs": [{"name": "extractor", "keys": 9, "watermark": None}, {"name": "detector", "keys": 50}]}


def asked(store: Store, topics: Topics | None, **more: Any) -> dict[str, Any]:
    app = create_app(store, actions=topics, **({"promises": PROMISES} | more))  # type: ignore[arg-type]
    return dict(TestClient(app, base_url="http://localhost").get("/api/budget").json())


@pytest.fixture(scope="module")
def store(endpoints: Endpoints) -> Iterator[Store]:
    with stored_site(endpoints.elasticsearch_url, [novelty("a", "cpu", NIGHT, "normal", 3.0)], INCIDENTS) as store:
        yield store


@pytest.mark.servers
def test_incidents_of_28_days_are_counted_and_those_that_labels_say_to_be_false(store: Store) -> None:
    found = asked(store, Topics(LABELS), status=status)
    lately = [each for each in INCIDENTS if each.opened >= found["since"] and each.status != "merged"]
    assert (found["full"], found["since"]) == (True, found["now"] - 28 * DAY)
    assert found["promised"] == {"false_pages": 2.0, "false_alarms": 1.0}
    assert found["incidents"] == {
        "written": len(lately), "labelled": len(LABELLED), "false": len(FALSE), "all_read": True,
    }  # fmt: skip
    assert {each.id for each in lately} > LABELLED


@pytest.mark.servers
def test_alarms_of_single_metrics_are_counted_on_how_many_series_and_the_detector_says_of_how_many(
    store: Store,
) -> None:
    found = asked(store, Topics(LABELS), status=status)
    last = {(each["host.name"], each["metric"], each["event.start"]): each["verdict"]
            for each in sorted(LABELS, key=lambda each: each["event.created"])}  # fmt: skip
    of_series = {key: said for key, said in last.items() if key[1] != "_machine" and key[2] >= found["since"]}
    false = [key for key, said in of_series.items() if said == "false_alarm"]
    series = {key[:2] for key in false}
    assert found["alarms"] == {"labelled": len(of_series), "false": len(false), "series": len(series)}
    assert (len(of_series), len(false), len(series)) == (10, 8, 7)
    assert found["judged"] == 50


@pytest.mark.servers
def test_each_incident_is_judged_by_the_labels_on_its_series() -> None:
    said = Labelled(last_labels(LABELS), END)
    documents = {each.id: each.model_dump(by_alias=True, exclude_none=True) for each in INCIDENTS}
    told = {name: said.verdicts(each) for name, each in documents.items()}
    assert told["one right"] == {"true", "false_alarm"}
    assert told["right after all"] == {"true"}
    assert told["not labelled"] == set()
    assert all(told[name] == {"false_alarm"} for name in FALSE)
    earlier = documents["twice false"] | {"series": []}
    earlier["machines"] = [{"entity": "b", "since": WEEK_AGO}]
    assert said.verdicts(earlier) == {"false_alarm"}, "an incident of an earlier version lists machines only"


@pytest.mark.servers
def test_without_labels_without_a_broker_without_data_and_without_a_promise_the_answer_says_so(
    store: Store,
) -> None:
    assert asked(store, Topics([]))["incidents"]["labelled"] == 0
    away = asked(store, Topics([], broken="KAFKA_UNREACHABLE"))
    assert (away["missing"], away["incidents"]["written"]) == ("KAFKA_UNREACHABLE", 7)
    assert asked(store, None)["missing"] == "this console reads no topics"
    assert asked(store, Topics([]), promises=None)["promised"] is None
    assert asked(Store(""), Topics([]))["since"] is None
    assert "judged" in away and away["judged"] is None, "no detector runs in this process"


@pytest.mark.servers
def test_a_site_younger_than_28_days_is_counted_from_its_first_instant(endpoints: Endpoints) -> None:
    first = novelty("a", "cpu", END - 2 * DAY, "learning", 0.0)
    with stored_site(
        endpoints.elasticsearch_url, [first], [of("false", NIGHT + 2 * DAY, row("a", "cpu", NIGHT + 2 * DAY))]
    ) as young:
        found = asked(young, Topics([label("a", "cpu", NIGHT + 2 * DAY, "false_alarm", END)]))
    assert (found["full"], found["since"]) == (False, first.window_start)
    assert found["incidents"] == {"written": 1, "labelled": 1, "false": 1, "all_read": True}


@pytest.mark.servers
def test_of_very_many_incidents_on_labelled_machines_only_the_newest_are_read_and_the_answer_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_store, "MAX_INCIDENTS", 2)
    assert asked(store, Topics(LABELS))["incidents"]["all_read"] is False
