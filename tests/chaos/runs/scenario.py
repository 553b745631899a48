"""The load of a chaos run: messages that follow from a seed and an event time alone, so that a run can be repeated."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.contracts import topics

STEP_MS = 2_000
"""Event time between two samples of a series."""
_MINUTE = 60_000
_METRICS = (("cpu", "gauge"), ("latency", "latency"), ("requests", "counter"), ("memory", "gauge"))
_LOG_LINES = ("user {} logged in", "request of {} took {} ms", "cache of {} is full", "retry {} of the call to {}")
_USERS = ("ann", "bob", "eve", "joe", "kim", "max")
_TOO_LATE_MS = 2 * 60 * _MINUTE
_FIRST_TOO_LATE = 400
"""Step from which on records come that are too late. Before it there are more messages of each topic than a micro-batch
takes, so that the watermark then stands far ahead, whatever the micro-batches."""
_AHEAD_MS = 3 * _MINUTE
"""How long before their effect rules and labels are given, so that it does not depend on when they arrive."""
_HOSTILE = (
    b"{not json",
    b"[1, 2]",
    b"\xff\xfe\x00",
    b'{"@timestamp":%d,"host.name":"h1","metric":"cpu","value":"1.5"}',
    b'{"@timestamp":%d,"host.name":"h1","metric":"cpu","value":true}',
    b'{"@timestamp":%d,"host":"h1","metric":"cpu","value":1.5}',
    b'{"@timestamp":%d,"host.name":"h1","metric":"cpu","value":1.5,"kind":"colour"}',
    b'{"@timestamp":1600000000,"host.name":"h1","metric":"cpu","value":1.5}',
    b'{"@timestamp":4000000000000,"host.name":"h1","metric":"cpu","value":1.5}',
    b'{"@timestamp":900000000000,"host.name":"h1","metric":"cpu","value":1.5}',
)


@dataclass(frozen=True)
class Outgoing:
    """A message for Kafka: the topic's name without the namespace, the key and the value."""

    topic: str
    key: str
    value: bytes


@dataclass(frozen=True)
class Scenario:
    """What is sent at each step of event time.

    Most samples are in order; some come up to two seconds out of order, some up to a minute late, a few hours late.
    A counter's sample that comes late has the value of later on, so that the counter seems to be reset behind it: then
    "requests 200 × the usual" is what must be told.
    Some machines have a spike, one is silent for some minutes, and operators give rules and labels. A few messages
    cannot be used.

    Args:
        seed: Decides everything but the times.
        begin: Event time of the first sample, epoch milliseconds, a multiple of all window lengths in use.
        machines: Number of machines.
    """

    seed: int
    begin: int
    machines: int = 12

    def at(self, step: int) -> Iterator[Outgoing]:
        """The messages of one step, in the order in which they are sent."""
        rng, time = random.Random(f"{self.seed}/{step}"), self.begin + step * STEP_MS
        for machine in range(self.machines):
            if self._silent(machine, time):
                continue
            yield from self._samples(rng, machine, step)
            yield from self._lines(rng, machine, time)
        yield from self._rare(rng, step, time)

    def closing(self, step: int) -> Iterator[Outgoing]:
        """Messages of one step that only move event time on, so that all earlier windows close."""
        for machine in range(self.machines):
            yield _sample(self.begin + step * STEP_MS, machine, "cpu", "gauge", 50.0)
            yield _line(self.begin + step * STEP_MS, machine, "the end", 6)

    def _samples(self, rng: random.Random, machine: int, step: int) -> Iterator[Outgoing]:
        time, values = self.begin + step * STEP_MS, self._values(machine, step)
        for (metric, kind), value in zip(_METRICS, values, strict=True):
            chance = rng.random()
            if chance < 0.01:
                continue
            shift = rng.randrange(0, 2_000) if chance < 0.1 else 0
            yield _sample(time - shift, machine, metric, kind, value)
            if chance > 0.995 and step > 60:
                yield _sample(time - rng.randrange(20_000, 60_000), machine, metric, kind, value * 1.01)

    def _values(self, machine: int, step: int) -> tuple[float, float, float, float]:
        noise = np.random.default_rng((self.seed, machine, step)).normal(size=3)
        load = 40 + 3 * machine + 5 * np.sin(step / 200 + machine)
        period, phase = 400, 37 * machine % 400
        factor = 2.5 if step > 200 and (step + phase) % period < 12 else 1.0
        cpu = float(np.clip(load * factor + 2 * noise[0], 0, 100))
        latency = float(np.exp(1 + 0.2 * noise[1]) * factor)
        return cpu, latency, float((step % 900) * (50 + machine)), float(1_000 + step % 300 + 4 * noise[2])

    def _lines(self, rng: random.Random, machine: int, time: int) -> Iterator[Outgoing]:
        if rng.random() < 0.5:
            text = rng.choice(_LOG_LINES).format(rng.choice(_USERS), rng.randrange(1_000))
            yield _line(time - rng.randrange(0, 1_000), machine, text, rng.choice((4, 6, 6, 6)))

    def _silent(self, machine: int, time: int) -> bool:
        return machine == self.machines - 1 and 5 * _MINUTE <= (time - self.begin) % (15 * _MINUTE) < 8 * _MINUTE

    def _rare(self, rng: random.Random, step: int, time: int) -> Iterator[Outgoing]:
        machine = rng.randrange(self.machines - 1)
        if step % 25 == 7:
            value = _HOSTILE[step // 25 % len(_HOSTILE)]
            yield Outgoing(topics.RAW_JSON, f"h{machine}", value % time if b"%d" in value else value)
        if step % 60 == 11:
            yield Outgoing(topics.LOGS_JSON, f"h{machine}", b'{"host.name":"h1","message":7}')
        if step > _FIRST_TOO_LATE and step % 40 == 3:
            yield _sample(self.begin - _TOO_LATE_MS + step, machine, "cpu", "gauge", 1.0)
            yield _line(self.begin - _TOO_LATE_MS + step, machine, f"too late {step}", 6)
        if step % 90 == 20:
            yield from self._control(rng, step, time, machine)

    def _control(self, rng: random.Random, step: int, time: int, machine: int) -> Iterator[Outgoing]:
        start, name, host = time + _AHEAD_MS, f"rule-{step}", f"h{machine}"
        effects: tuple[dict[str, Any], ...] = (
            {"skip_result": True},
            {"skip_learning": True},
            {"above": 80.0, "report": True, "metric": "cpu"},
        )
        rule = {
            "id": name,
            "@timestamp": time,
            "host.name": host,
            "event.start": start,
            "event.end": start + 2 * _MINUTE,
        }
        yield _control(topics.RULES, name, rule | rng.choice(effects))
        label = {"host.name": host, "metric": "cpu", "event.start": time - _MINUTE, "event.end": time}
        verdict = rng.choice(("false_alarm", "expected_change", "true"))
        yield _control(topics.LABELS, f"{host}-{step}", label | {"event.created": start, "verdict": verdict})
        yield _control(topics.RULES, f"wrong-{step}", {"id": f"wrong-{step}", "@timestamp": time, "colour": "red"})


def _sample(time: int, machine: int, metric: str, kind: str, value: float) -> Outgoing:
    sample = {"@timestamp": time, "host.name": f"h{machine}", "metric": metric, "value": value, "kind": kind}
    return Outgoing(topics.RAW_JSON, f"h{machine}", json.dumps(sample).encode())


def _line(time: int, machine: int, text: str, severity: int) -> Outgoing:
    fields = {"@timestamp": time, "host.name": f"h{machine}", "process.name": "app", "message": text}
    value = json.dumps(fields | {"log.syslog.severity.code": severity}).encode()
    return Outgoing(topics.LOGS_JSON, f"h{machine}", value)


def _control(topic: str, key: str, fields: dict[str, Any]) -> Outgoing:
    return Outgoing(topic, key, json.dumps(fields).encode())
