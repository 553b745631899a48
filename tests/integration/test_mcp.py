"""`newnormal mcp` on real servers: the client of the SDK asks what operators ask, and gets the right facts.

What is right is read from the topics as plain JSON.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import httpx2
import orjson
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from engine.spec.duration import iso
from pipelines.contracts import topics
from tests.integration.conftest import Pipeline
from tests.integration.spikes import MINUTE, SPIKES, send_minutes

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

TOKEN = "a-token-of-this-test-only"
METRIC = "cpu.util"
Ask = Callable[..., Awaitable[Any]]


def _newest(pipeline: Pipeline, topic: str, *identity: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The record of each identity that counts, in the order of the topic."""
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for message in pipeline.read(topic):
        record = _json(message.value())
        key = tuple(record.get(name) for name in identity)
        if record and newest.get(key, record).get("revision", 0) <= record.get("revision", 0):
            newest[key] = record
    return newest


def _json(value: bytes) -> dict[str, Any]:
    try:
        return dict(orjson.loads(value))
    except orjson.JSONDecodeError:  # a heartbeat
        return {}


def _started(pipeline: Pipeline, said: str, *command: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server in a process of its own, and its address, which it says."""
    begun = len(pipeline.log.read_bytes()) if pipeline.log.exists() else 0
    process, deadline = pipeline.spawn(*command), time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(said, pipeline.log.read_bytes()[begun:].decode()):
            return process, found[1]
        time.sleep(0.2)
    raise AssertionError(pipeline.log.read_text()[-3000:])


async def _asked(client: Client, name: str, **arguments: Any) -> Any:
    """The answer of a tool, which has the command that gives the same; or, of an error, its sentence."""
    result = await client.call_tool(name, arguments)
    text = result.content[0].text
    if result.is_error:
        return text
    answer = json.loads(text)
    assert answer["command"].startswith("newnormal ")
    return answer


async def _ten_questions(client: Client, pipeline: Pipeline, machine: str, start: int) -> None:
    def ask(name: str, **arguments: Any) -> Awaitable[Any]:
        return _asked(client, name, **arguments)

    incidents = _newest(pipeline, topics.INCIDENTS, "event.id")
    on_machine = sorted(
        (each for each in incidents.values() if machine in {m["entity"] for m in each["machines"]}),
        key=lambda each: each["@timestamp"],
    )
    verdicts = _newest(pipeline, topics.NOVELTIES, "host.name", "metric", "@timestamp")
    states = _newest(pipeline, topics.STATE, "host.name", "metric")

    # 1 which incidents were there? 2 on this machine? 3 on one that is not there?
    all_of_them = await ask("incidents", everything=True)
    assert {each["id"] for each in all_of_them["incidents"]} == {name for (name,) in incidents}
    mine = await ask("incidents", everything=True, machine=machine, limit=1)
    assert mine["incidents"][0]["id"] == on_machine[-1]["event.id"]
    assert mine["left_out"] == len(on_machine) - 1
    assert (await ask("incidents", machine="nobody"))["incidents"] == []

    # 4 why was it told? 5 has that been before?
    first, last = on_machine[0], on_machine[-1]
    why = await ask("why", incident=last["event.id"][:12])
    assert why["incident"]["message"] == last["message"]
    assert [each["entity"] for each in why["incident"]["candidates"]] == [c["entity"] for c in last["candidates"]]
    assert why["incident"]["start"] == iso(last["event.start"])
    assert why["proof"] == f"newnormal prove {last['event.id']}"
    similar = await ask("similar", incident=last["event.id"])
    assert first["event.id"] in {each["event.id"] for each in similar["similar"]}
    assert last["event.id"] not in {each["event.id"] for each in similar["similar"]}

    # 6 what was said of the metric then? 7 why was nobody told? 8 and of a quiet time?
    surge = start + SPIKES[0] * MINUTE
    said = await ask("verdicts", machine=machine, metric=METRIC, time=iso(surge), within="3m")
    wanted = {
        iso(at): each["kind"] for (host, metric, at), each in verdicts.items()
        if (host, metric) == (machine, METRIC) and surge < at <= surge + 3 * MINUTE + 9_999
    }  # fmt: skip
    assert {each["@timestamp"]: each["kind"] for each in said["verdicts"]} == wanted
    assert "anomaly" in wanted.values()
    not_told = await ask("why_not", machine=machine, metric=METRIC, time=iso(surge), within="3m")
    assert (not_told["ended_at"], "notify.channels" in not_told["answer"]) == ("told", True)
    calm = await ask("why_not", machine=machine, metric=METRIC, time=iso(start + 25 * MINUTE), within="1m")
    assert calm["ended_at"] in {"unusual", "score"}

    # 9 which series has the machine, what is believed of one, what were its last values?
    series = await ask("series", machine=machine)
    assert {each["metric"] for each in series["series"]} == {metric for host, metric in states if host == machine}
    state = await ask("state", machine=machine, metric=METRIC)
    assert state["state"]["typical"] == states[machine, METRIC]["typical"]
    ends = sorted(at for host, metric, at in verdicts if (host, metric) == (machine, METRIC))
    windows = await ask("windows", machine=machine, metric=METRIC, last=5)
    assert [each["window_end"] for each in windows["windows"]] == [iso(at) for at in ends[-5:]]
    means = [each["mean"] for each in windows["windows"]]
    assert means == pytest.approx([verdicts[machine, METRIC, at]["actual"] for at in ends[-5:]])

    # 10 how many series are there, and what is most abnormal?
    top = await ask("top", count=3)
    assert top["counts"]["series"] == len(states)
    assert len(top["series"]) <= 3

    # and how do two versions differ?
    compared = (await ask("compare", first="v1", second="v2"))["comparison"]
    assert str(len(incidents)) in json.dumps(compared)

    assert "VIEW_SERIES_UNKNOWN" in await ask("state", machine="nobody", metric="cpu")
    assert "no machine nobody is known" in (await ask("why_not", machine="nobody", metric="cpu", time="-1h"))["answer"]
    assert "INCIDENT_UNKNOWN" in await ask("why", incident="zzz")
    assert "USAGE_INVALID" in await ask("compare", first="v1", second="v1")
    assert "VERSION_UNKNOWN" in await ask("compare", first="v1", second="v9")
    assert "TIME_INVALID" in await ask("why_not", machine=machine, metric=METRIC, time="teatime")


async def _over_http(url: str, token: str) -> Any:
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}))
        client = await stack.enter_async_context(Client(streamable_http_client(url, http_client=web)))
        return await _asked(client, "incidents", everything=True)


def test_ten_questions_of_operators_are_answered_with_the_right_facts_over_stdio_and_http(pipeline: Pipeline) -> None:
    start = (int(time.time() * 1000) - 120 * MINUTE) // MINUTE * MINUTE
    machine = send_minutes(pipeline, start, 0, 85)
    pipeline.command("run", "--until", "now")
    pipeline.command("replay", "--as", "v2", "--job", "detector", "--until", "now")
    pipeline.environment["NEWNORMAL_VIEW__TOKEN"] = TOKEN
    view, url = _started(pipeline, r"state view of v1 at (http\S+)", "view", "--port", "0")
    served, address = _started(pipeline, r"answers at (http\S+)", "mcp", "--http", "--port", "0", "--view", url)
    try:
        series = len(_newest(pipeline, topics.STATE, "host.name", "metric"))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        deadline = time.monotonic() + 60
        while httpx.get(f"{url}/counts", headers=headers).json()["counts"].get("series") != series:
            assert time.monotonic() < deadline, "the view has not read all"
            time.sleep(0.2)
        words = ["-m", "pipelines.cli.main", "mcp", "--view", url]
        stdio = StdioServerParameters(command=sys.executable, args=words, env=pipeline.environment)

        async def over_stdio() -> None:
            async with Client(stdio) as client:
                await _ten_questions(client, pipeline, machine, start)

        asyncio.run(over_stdio())
        answer = asyncio.run(_over_http(address, TOKEN))
        known = _newest(pipeline, topics.INCIDENTS, "event.id")
        assert {each["id"] for each in answer["incidents"]} == {name for (name,) in known}
        for wrong in ({}, {"Authorization": "Bearer a-token-of-somebody-else"}):
            refused = httpx.post(address, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=wrong)
            assert (refused.status_code, refused.json()["code"]) == (401, "VIEW_TOKEN_REQUIRED")
        elsewhere = httpx.post(address, json={}, headers=headers | {"Host": "evil.example"})
        assert (elsewhere.status_code, elsewhere.json()["code"]) == (400, "VIEW_HOST_REFUSED")
        with pytest.raises(BaseException):  # noqa: B017  the client's groups of errors say only that it was 401
            asyncio.run(_over_http(address, "a-token-of-somebody-else"))
    finally:
        for process in (served, view):
            process.terminate()
            process.wait(60)
