"""Scores that are pushed by remote write: each window once, whatever the receiver answers and whoever ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings, load
from pipelines.doctor.context import Context
from pipelines.doctor.scores import scores_pushed
from pipelines.query.view.answers import Answers
from pipelines.query.view.database import Database
from pipelines.query.view.part import Part
from pipelines.query.view.scores.endpoint import Endpoint
from pipelines.query.view.scores.sender import Sender
from pipelines.query.view.scores.sent import Sent, sent
from tests.endless_answers import endless
from tests.pipelines.query.remote_write_receiver import Receiver
from tests.pipelines.query.stored_scores import STEP, T0, Labels, Stored, expected, history, said
from tests.pipelines.query.view_topics import until


@pytest.fixture
def view(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path)
    yield stored
    stored.database.close()


@contextmanager
def sender(view: Stored, url: str, **scores: Any) -> Iterator[Sender]:
    """One that reads the database of a view as another process does."""
    changed = view.settings.scores.model_copy(update={"remote_write_url": url, **scores})
    settings = view.settings.model_copy(update={"scores": changed})
    database = Database(view.folder / "data", view.folder / "pusher")
    with Endpoint(changed) as endpoint:
        yield Sender(Answers(database, settings, view.partitions, Part()), view.folder, endpoint)
    database.close()


def pushed(one: Sender, window: int) -> None:
    """Pushes until the end of a window."""
    late = threading.Event()
    timer = threading.Timer(60, late.set)
    timer.start()

    def there() -> bool:
        one.step(late)
        return one.sent.until == T0 + (window + 1) * STEP

    until(there)
    timer.cancel()


def truth(beliefs: list[Any], verdicts: list[Any], windows: range) -> dict[Labels, dict[int, float]]:
    """What a receiver has to have of some windows."""
    whole: dict[Labels, dict[int, float]] = {}
    for window in windows:
        for labels, value in expected(beliefs, verdicts, window).items():
            whole.setdefault(labels, {})[T0 + (window + 1) * STEP] = value
    return whole


def test_each_window_is_pushed_once_over_outages_restarts_and_a_receiver_that_is_busy(view: Stored) -> None:
    beliefs, verdicts = history(20, 40, seed=9)
    receiver = Receiver([(204, {}), (503, {}), (429, {"Retry-After": "1"}), (500, {})])
    view.write(beliefs, verdicts, range(4))
    with sender(view, receiver.url) as one:
        pushed(one, 3)
        view.write(beliefs, verdicts, range(4, 9))
        began = time.monotonic()
        pushed(one, 8)
        assert time.monotonic() > began + 1, "it asks again no sooner than the receiver wants"
    view.write(beliefs, verdicts, range(9, 20))
    with sender(view, receiver.url) as one:
        pushed(one, 19)
        assert (one.sent.refused, one.sent.skipped, one.sent.failing_since) == (0, 0, None)
        assert one.sent.samples == sum(map(len, receiver.samples.values()))
    receiver.close()
    assert receiver.statuses[:5] == [204, 503, 429, 500, 204]
    assert receiver.faults == []
    assert receiver.samples == truth(beliefs, verdicts, range(3, 20))


def test_what_the_receiver_refuses_is_counted_and_not_sent_again(view: Stored) -> None:
    beliefs, verdicts = history(6, 10, seed=2)
    receiver = Receiver([(204, {}), (400, {})])
    view.write(beliefs, verdicts, range(2))
    with sender(view, receiver.url) as one:
        pushed(one, 1)
        view.write(beliefs, verdicts, range(2, 4))
        pushed(one, 3)
        assert one.sent.refused == len(expected(beliefs, verdicts, 2))
        assert one.sent.reason == "it answered 400 this is the reason"
    receiver.close()
    assert receiver.statuses == [204, 400, 204]
    whole = truth(beliefs, verdicts, range(1, 4))
    assert receiver.samples == {
        labels: {t: v for t, v in told.items() if t != T0 + 3 * STEP} for labels, told in whole.items()
    }


def test_a_series_that_is_told_no_longer_ends_with_a_stale_marker(view: Stored) -> None:
    open_, over = said("web-1", "cpu", 0, "anomaly", 90.0), said("web-1", "cpu", 1, "recovered", 5.0)
    receiver = Receiver()
    view.write([open_, said("web-2", "cpu", 0)], [], range(1))
    with sender(view, receiver.url, novel=True) as one:
        pushed(one, 0)
        view.write([over], [], range(1, 3))
        pushed(one, 2)
    receiver.close()
    assert receiver.faults == []
    assert {dict(labels)["machine"] for labels in receiver.samples} == {"web-1"}
    assert receiver.stale == {labels: {T0 + 2 * STEP} for labels in receiver.samples}


def test_windows_that_the_view_has_forgotten_are_counted(view: Stored) -> None:
    """`view.windows` is 100 here."""
    receiver = Receiver()
    view.write([said("web-1", "cpu", 0)], [], range(1))
    with sender(view, receiver.url) as one:
        pushed(one, 0)
        view.write([said("web-1", "cpu", 200)], [], range(1, 201))
        pushed(one, 200)
        assert one.sent.skipped == 200 - view.settings.view.windows
    receiver.close()
    assert receiver.faults == []


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"scores.remote_write_url": "nowhere"}, "scores.remote_write_url"),
        ({"scores.remote_write_url": "http://me:word@b/write"}, "scores.remote_write_url"),
        ({"scores.remote_write_tenant": "mine"}, "scores.remote_write_tenant"),
        ({"scores.series": "no-slash"}, "scores.series"),
        ({"scores.most": 0}, "scores.most"),
    ],
)
def test_wrong_settings_stop_the_start(given: dict[str, Any], name: str) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**given)
    assert caught.value.code == "SETTING_INVALID" and name in f"{caught.value.what} {caught.value.where}"


def test_a_file_without_a_header_stops_the_start(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    given = {"remote_write_url": "http://b:1/write", "remote_write_authorization_file": str(empty)}
    with pytest.raises(NewnormalError) as caught:
        Endpoint(load().scores.model_copy(update=given))
    assert caught.value.code == "LOGIN_FILE"
    assert sent(tmp_path) is None


def test_a_receiver_whose_answer_has_no_end_has_taken_a_request() -> None:
    with (
        endless(b"ok" * 1_000_000, 0.0) as url,
        Endpoint(load().scores.model_copy(update={"remote_write_url": url})) as endpoint,
    ):
        assert endpoint.post(b"") == ""


def test_doctor_finds_a_receiver_that_does_not_answer_one_that_refuses_and_that_nobody_pushes(tmp_path: Path) -> None:
    now = T0
    settings = load(state_dir=tmp_path, **{"scores.remote_write_url": "http://b:1/write"})

    def found(chosen: Settings = settings) -> list[tuple[str, str]]:
        return [(each.code, each.what) for each in scores_pushed(Context(chosen, clock=lambda: now))]

    assert found(load(state_dir=tmp_path)) == []
    assert found() == [("SCORES_NOBODY_PUSHES", "nothing was pushed yet")]
    first, other = (
        settings.folder("view") / "part-1-of-1",
        settings.common_folder("view").with_name("default@v2") / "part-1-of-1",
    )
    for folder in (first, other):
        folder.mkdir(parents=True)
    Sent(until=now, receiver="http://b:1").write(first)
    assert found() == []
    Sent(failing_since=now - 700_000, reason="no route", receiver="http://b:1").write(first)
    Sent(refused=1_200, refused_at=now - 60_000, reason="it answered 400", receiver="http://b:1").write(other)
    assert found() == [
        ("SCORES_NOT_PUSHED", "http://b:1 has not answered for 12 min: no route"),
        ("SCORES_REFUSED", "http://b:1 has refused 1,200 samples so far: it answered 400"),
    ]
