"""200 random incidents and `newnormal notify run` as a process that is killed: who is told what, and in which order."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from deploy.embedded.endpoints import Endpoints
from pipelines.contracts.records import Incident
from tests.pipelines.notify.receivers import HttpReceiver, http_receiver, until
from tests.pipelines.notify.routing_reference import Channel, begun, changed, whom
from tests.pipelines.notify.test_notify_process import Site

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

ROUTES: list[dict[str, Any]] = [
    {
        "machine": "db-*",
        "severity": "major",
        "channels": ["pager"],
        "escalate": [{"after": "15m", "channels": ["boss"]}],
    },
    {"tag": ["path=/*"], "times": "mon-fri 08:00-18:00", "timezone": "Europe/Stockholm", "channels": ["disks"]},
    {"metric": "latency", "channels": ["pager", "chat"], "severity": "minor"},
    {"times": "22:00-06:00, sat-sun", "severity": "critical", "channels": ["boss"]},
    {"machine": "cache", "channels": []},
    {"severity": "minor", "channels": ["chat"], "escalate": [{"after": "15m", "channels": ["pager", "disks"]}]},
]
CHANNELS = ["pager", "boss", "disks", "chat"]
INCIDENTS, STARTS = 200, 5


def settings(receiver: HttpReceiver, matching: str) -> str:
    """The settings as they stand in a file."""
    lines = [f'matching = "{matching}"']
    for route in ROUTES:
        steps = [f'{{after = "{it["after"]}", channels = {it["channels"]}}}' for it in route.get("escalate", [])]
        plain = [f"{name} = {orjson.dumps(value).decode()}" for name, value in route.items() if name != "escalate"]
        lines += ["[[notify.routes]]", *plain, f"escalate = [{', '.join(steps)}]"]
    for name in CHANNELS:
        lines += [f"[notify.channels.{name}]", 'kind = "webhook"', f'url = "{receiver.url}/{name}"']
    return "\n".join(lines) + "\n"


Got = list[tuple[str, str]]
"""Incident and state of messages."""


class Followed:
    """Follows what one channel is told, and compares it with what it has to be told.

    Two things are not known of a kill: whether the last message was stored as told; and whether the next one had begun,
    so that it may have arrived, and the channel hears of its end.
    """

    def __init__(self) -> None:
        self._channels = [Channel()]

    def check(self, got: Got, incidents: dict[str, list[Incident]], mine: dict[str, bool]) -> None:
        """Checks what came since a start: the first messages of what was due, in their order."""
        fits: list[Channel] = []
        for channel in self._channels:
            due = channel.due(incidents, mine)
            if [each[:2] for each in due[: len(got)]] == got:
                for count in {max(0, len(got) - 1), len(got), min(len(due), len(got) + 1)}:
                    fits.append(channel.after(due[:count]))
        assert fits, (got, self.expected(incidents, mine))
        self._channels = fits

    def expected(self, incidents: dict[str, list[Incident]], mine: dict[str, bool]) -> list[Got]:
        """All messages of which one list has to come."""
        return [[each[:2] for each in channel.due(incidents, mine)] for channel in self._channels]


@pytest.mark.parametrize("matching", ["first", pytest.param("all", marks=pytest.mark.slow)])
def test_random_incidents_page_whom_the_routes_say_once_and_in_order_over_kills(
    endpoints: Endpoints, tmp_path: Path, matching: str
) -> None:
    dice, incidents = random.Random(11), dict[str, list[Incident]]()
    with http_receiver() as receiver:

        def slow(_: int) -> tuple[int, dict[str, str], str]:
            time.sleep(0.005)
            return 200, {}, ""

        receiver.answers = slow
        site = Site(endpoints, tmp_path, receiver, settings(receiver, matching))
        process = site.start()  # what is over before the first start is not told
        process.kill()
        process.communicate()
        followed = {name: Followed() for name in CHANNELS}
        for number in range(STARTS):
            now, written = int(time.time() * 1000), list[Incident]()
            for n in range(INCIDENTS):
                name = f"i{n:03}"
                if name not in incidents:
                    if n % STARTS <= number:
                        incidents[name] = [begun(name, dice, now)]
                        written += incidents[name]
                elif dice.random() < 0.5:
                    incidents[name].append(changed(incidents[name][-1], dice, now))
                    written.append(incidents[name][-1])
            site.write(written)
            mine = {name: whom(ROUTES, matching, each, now) for name, each in incidents.items()}
            before, process = len(receiver.got), site.start()
            due = {name: {it: name in mine[it] for it in incidents} for name in CHANNELS}

            def got(name: str, before: int = before) -> Got:
                bodies = [body for path, _, body in receiver.got[before:] if path == f"/{name}"]
                return [(each["incidents"][0]["incident"]["event.id"], each["state"]) for each in bodies]

            expected = {name: followed[name].expected(incidents, due[name]) for name in CHANNELS}
            if number < STARTS - 1:
                total = sum(min(map(len, each)) for each in expected.values())
                enough = before + dice.randrange(total // 4, total)
                until(lambda enough=enough: len(receiver.got) >= enough, 120)  # type: ignore[misc]
                process.kill()
            else:
                until(lambda got=got, expected=expected: all(got(name) in expected[name] for name in CHANNELS), 120)  # type: ignore[misc]
                time.sleep(1.0)  # nothing more may come
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            for name in CHANNELS:
                followed[name].check(got(name), incidents, due[name])
    assert len(incidents) == INCIDENTS
    assert all(got(name) in expected[name] for name in CHANNELS), "each channel was told all, and nothing else"
