"""What is to be seen of notifications: metrics, `newnormal status` and a finding of doctor; with a real receiver."""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident
from pipelines.contracts.settings import NotifySettings, Settings, load
from pipelines.doctor.context import Context
from pipelines.doctor.notifications import failing, unheard
from pipelines.notify import teller
from pipelines.notify.figures import ChannelFigures
from pipelines.notify.memory import Memory
from pipelines.notify.metrics import MetricsServer
from pipelines.notify.routing import Routing
from pipelines.notify.status import StatusFile, notifier
from pipelines.notify.teller import Teller
from tests.pipelines.notify.receivers import HttpReceiver, http_receiver, incident, until

MINUTE = 60_000


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpReceiver]:
    for name, seconds in (("_LOOK", 0.02), ("_FIRST", 0.02), ("_LONGEST", 0.04)):
        monkeypatch.setattr(teller, name, seconds)
    with http_receiver() as made:
        yield made


def settings(receiver: HttpReceiver, folder: Path, **more: Any) -> Settings:
    channels = {"hook": {"kind": "webhook", "url": receiver.url}}
    return load(**{"notify.channels": channels, "notify.rate": 100, "state_dir": folder, **more})


class Site:
    """A channel that is told, with what a `Notifier` shows of it."""

    def __init__(self, given: Settings, mine: Teller, memory: Memory) -> None:
        self._mine, self._memory, self._read = mine, memory, 0
        self._server = MetricsServer(lambda: [mine.figures()], NotifySettings(port=0))
        self._file = StatusFile(given, self._server.url)

    def read(self, *found: Incident) -> None:
        """What a reader does that has read some incidents, and the topic to its end."""
        self._read += 1
        self._memory.take("incidents", found, {0: self._read}, int(time.time() * 1000))
        self._memory.begin("incidents")

    def metrics(self) -> dict[str, float]:
        """What Prometheus scrapes of the channel `hook`, by name without the common beginning."""
        with urllib.request.urlopen(self._server.url) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        samples = [sample for family in families for sample in family.samples]
        assert {sample.labels.get("channel") for sample in samples if not sample.name.endswith("_created")} == {"hook"}
        return {sample.name.removeprefix("newnormal_notify_"): sample.value for sample in samples}

    def seen(self, condition: Callable[[ChannelFigures], bool]) -> None:
        """Waits until the figures fulfil a condition, and writes them where the commands read them."""
        until(lambda: condition(self._mine.figures()))
        self._file.write([self._mine.figures()])

    def close(self) -> None:
        self._server.close()
        self._file.remove()


@contextmanager
def telling(given: Settings, folder: Path) -> Iterator[Site]:
    memory = Memory(folder / "memory", ["hook"])
    mine = Teller("hook", given, memory, lambda: ("incidents", "v1"))
    site = Site(given, mine, memory)
    mine.start()
    try:
        yield site
    finally:
        mine.stop()
        mine.join(10)
        site.close()
        memory.close()


def found(given: Settings, minutes: int) -> list[str]:
    """What doctor finds some minutes from now."""
    later = int(time.time() * 1000) + minutes * MINUTE
    return [each.what for each in failing(Context(given, clock=lambda: later)) if each.code == "NOTIFY_FAILING"]


def test_a_channel_that_fails_is_seen_in_metrics_status_and_doctor_until_it_works(
    receiver: HttpReceiver, tmp_path: Path
) -> None:
    receiver.answers = lambda _: (503, {}, "in maintenance")
    given = settings(receiver, tmp_path)
    assert notifier(given) is None and found(given, 60) == []
    with telling(given, tmp_path) as site:
        site.read(incident(), incident("bbb"))
        site.seen(lambda figures: figures.failed >= 3)
        read = site.metrics()
        assert (read["sent_total"], read["waiting"], read["suppressed"]) == (0, 2, 0)
        assert read["failed_total"] >= 3 and read["oldest_waiting_seconds"] > 0 and read["failing_seconds"] > 0
        assert found(given, 9) == [], "receivers restart"
        (what,) = found(given, 12)
        assert what.startswith("hook has failed for 1")
        assert what.endswith("min, 2 incidents wait: it answered 503 in maintenance")
        receiver.answers = lambda _: (200, {}, "")
        site.seen(lambda figures: figures.sent == 2 and figures.failing_since is None)
        read = site.metrics()
        assert (read["sent_total"], read["waiting"], read["oldest_waiting_seconds"], read["failing_seconds"]) == (
            2, 0, 0, 0,
        )  # fmt: skip
        assert found(given, 60) == []
        process = notifier(given)
        assert process and process.channels[0].sent == 2
    assert notifier(given) is None, "the process has ended"


def test_doctor_finds_what_no_route_takes_a_channel_that_none_names_and_one_without_its_secret(
    tmp_path: Path,
) -> None:
    channels = {
        "hook": {"kind": "webhook", "url": "http://127.0.0.1:9"},
        "pager": {"kind": "pagerduty", "key_file": str(tmp_path / "absent")},
    }
    routes = [{"severity": "critical", "channels": ["hook"]}]
    given = load(**{"notify.channels": channels, "notify.routes": routes, "state_dir": tmp_path})
    kinds = [(each.code, each.where) for each in unheard(Context(given))]
    assert kinds == [("NOTIFY_SECRET", f"notify.channels.pager.key_file: {tmp_path / 'absent'}"),
                     ("NOTIFY_UNNAMED", "notify.routes")]  # fmt: skip
    memory = Memory(tmp_path / "memory", list(channels), Routing.of(given.notify))
    over = incident("over", "resolved", severity="minor")
    memory.take("incidents", [incident(), incident("bbb", severity="minor"), over], {0: 3}, 0)
    memory.begin("incidents")
    untaken = memory.untaken("incidents")
    memory.close()
    file = StatusFile(given, "http://127.0.0.1:8900/metrics")
    file.write([], len(untaken))
    (found,) = failing(Context(given))
    file.remove()
    assert (untaken, found.code, found.what) == (["bbb"], "NOTIFY_UNTAKEN", "1 incident lasts that no route takes")


def test_what_the_rate_holds_back_is_suppressed_and_does_not_wait(receiver: HttpReceiver, tmp_path: Path) -> None:
    with telling(settings(receiver, tmp_path, **{"notify.rate": 1, "notify.per": "1h"}), tmp_path) as site:
        site.read(incident(severity="minor"))
        site.seen(lambda figures: figures.sent == 1)
        site.read(incident("bbb", severity="minor"), incident("ccc", severity="minor"))
        site.seen(lambda figures: figures.suppressed == 2)
        read = site.metrics()
        assert (read["sent_total"], read["waiting"], read["failed_total"], read["suppressed"]) == (1, 0, 0, 2)


def test_a_message_that_is_given_up_neither_waits_nor_counts_as_sent(receiver: HttpReceiver, tmp_path: Path) -> None:
    receiver.answers = lambda _: (400, {}, "")
    with telling(settings(receiver, tmp_path), tmp_path) as site:
        site.read(incident())
        site.seen(lambda figures: figures.given_up == 1)
        read = site.metrics()
        assert (read["sent_total"], read["given_up_total"], read["waiting"], read["failed_total"]) == (0, 1, 0, 4)


def test_a_file_that_a_killed_process_left_or_that_is_damaged_is_not_believed(
    receiver: HttpReceiver, tmp_path: Path
) -> None:
    given = settings(receiver, tmp_path)
    StatusFile(given, "http://me").write([ChannelFigures("hook", failing_since=0)])
    path = given.file("notify.json")
    assert found(given, 0) != []
    tree = json.loads(path.read_text())
    path.write_text(json.dumps(tree | {"started": tree["started"] - 1_000}))
    assert notifier(given) is None and found(given, 0) == []
    path.write_text("{")
    assert notifier(given) is None


def test_metrics_take_the_next_free_port_and_an_address_that_is_not_ours_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = MetricsServer(list, NotifySettings(port=port))
        try:
            assert int(server.url.removesuffix("/metrics").rsplit(":", 1)[1]) > port
        finally:
            server.close()
    with pytest.raises(NewnormalError) as caught:
        MetricsServer(list, NotifySettings(host="192.0.2.1"))
    assert caught.value.code == "PORT_TAKEN" and "notify.host" in caught.value.where


@contextmanager
def asking(**given: Any) -> Iterator[Callable[..., int]]:
    """A server of metrics, and a function that returns the status of a request with some headers."""
    server = MetricsServer(list, NotifySettings(port=0, **given))

    def status(**headers: str) -> int:
        return httpx.get(server.url, headers=headers, trust_env=False).status_code

    try:
        yield status
    finally:
        server.close()


def test_metrics_are_for_this_machine_or_for_who_shows_the_token(tmp_path: Path) -> None:
    with asking() as status:
        assert (status(), status(Host="localhost:8900"), status(Host="evil.example")) == (200, 200, 403)
    token = "0123456789abcdef-secret"
    (tmp_path / "word").write_text(f"{token}\n")
    for given in ({"token": SecretStr(token)}, {"token_file": str(tmp_path / "word")}):
        with asking(**given) as status:
            assert (status(), status(Authorization="Bearer another-token-of-mine")) == (401, 401)
            assert status(Authorization=f"Bearer {token}") == 200
            assert status(Authorization=f"Bearer {token}", Host="prometheus.example") == 200


def test_others_than_this_machine_are_answered_with_a_token_only() -> None:
    with pytest.raises(NewnormalError, match=r"notify\.host = '0\.0\.0\.0'"):
        load(**{"notify.host": "0.0.0.0"})
    assert load(**{"notify.host": "0.0.0.0", "notify.token": "0123456789abcdef-secret"}).notify.host == "0.0.0.0"
    with pytest.raises(NewnormalError, match="NOTIFY_TOKEN"):
        MetricsServer(list, NotifySettings(port=0, token_file="absent"))
