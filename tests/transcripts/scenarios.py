"""Reads transcripts: YAML families of scenarios, in a notation that fits on a line.

Input: micro-batches divided by ``|``; in one, records ``KEY TIME=VALUE`` divided by commas, among them ``!`` (the job
is killed there) or ``~`` (stopped and restored), ``@1`` in front for partition 1; or ``W TIME`` (watermark; of one
partition ``W TIME @1``), or ``C SECONDS`` (processing time goes on; ``C SECONDS @1``: one partition alone tells).
``& `` in front: in one micro-batch with the last.

Panes: ``KEY START..END PANE TIMING REVISION = SUM``, with ``-`` in front if taken back; ``ever`` is all time. Panes of
a window stand in the order in which they are written. ``[ACTION]`` in front of a pane says that it, and those after it,
are written in the micro-batch that brings the action: a record or ``C SECONDS`` as in the input (``#2`` behind: the
second such one), or ``W TIME``, the watermark's coming to that time or beyond.

Times are seconds (with ``h``: hours) from 12:00, wall-clock times of that day, or ISO 8601; all in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from engine import triggers, windows
from engine.spec.duration import END_OF_TIME, NEVER, duration_ms, epoch_ms
from engine.spec.job import Job
from engine.testing import ABORT, RESTART, TestStream
from tests.engine.panes import event, job

DAY = "2024-01-01T"
T0 = epoch_ms(DAY + "12:00")
_PANE = re.compile(r"(-?)(\w+) (?:(ever)|(\S+?)\.\.(\S+)) (\d+) (early|on_time|late) (\d+) = (-?[\d.]+)")
_NAMES = {name: getattr(module, name) for module in (triggers, windows) for name in module.__all__}

Pane = tuple[bool, str, int, int, int, str, int, float]


@dataclass(frozen=True)
class Scenario:
    """One input, and what must come out.

    Attributes:
        firings: For each micro-batch the panes that it writes, those of one window in order.
        final: The sum of each window of the whole input, for the bounded run; ``None`` where records are dropped.
        adding: Whether the panes of a window add up to its result.
    """

    name: str
    job: Job
    stream: TestStream
    firings: list[list[Pane]]
    late: list[dict[str, Any]]
    final: dict[tuple[str, int, int], float] | None
    adding: bool

    @property
    def panes(self) -> list[Pane]:
        """All panes."""
        return [pane for some in self.firings for pane in some]


@cache
def scenarios(directory: Path) -> tuple[Scenario, ...]:
    """All scenarios of a directory, which several files of tests use, read once."""
    return tuple(_read(directory))


def _read(directory: Path) -> Iterator[Scenario]:
    for file in sorted(directory.glob("*.yaml")):
        for family in yaml.load(file.read_text(), yaml.CSafeLoader):
            for case in family["cases"]:
                whole = {**family, **case}
                inputs = whole["input"] if isinstance(whole["input"], dict) else {"": whole["input"]}
                for label, text in inputs.items():
                    name = " / ".join(filter(None, [file.stem, family["family"], case.get("case", ""), label]))
                    yield _scenario(name, whole, text)


def _scenario(name: str, spec: dict[str, Any], text: str) -> Scenario:
    how = _value(spec.get("panes", "Accumulating()"))
    evict = _value(spec["evict"]) if "evict" in spec else None
    window = _value(spec["window"])
    default = None if isinstance(window, windows.Policy) else triggers.AfterWatermark()
    trigger = _value(spec["trigger"]) if "trigger" in spec else default
    made = job(window, trigger, how, spec.get("lateness", "0s"), evict, spec.get("time", "event"))
    streamed, actions = stream(text)
    lines = firings_of(spec["expect"], actions, len(streamed.batches))
    firings = [[_pane(line) for line in some] for some in lines]
    panes = [pane for some in firings for pane in some]
    late = [_record(item) for item in _split(spec.get("late", ""), ",")]
    final, adding = None, isinstance(how, triggers.Discarding)
    if "final" in spec:
        lines = [_pane(line) for line in _split(spec["final"], "|")]
        final = {(key, start, end): total for _, key, start, end, *_, total in lines}
    elif not late and spec.get("bounded", True):
        final = finals(panes, adding)
    return Scenario(name, made, streamed, firings, late, final, adding)


def finals(panes: list[Pane], adding: bool) -> dict[tuple[str, int, int], float]:
    """The result of each window: its last pane that was not taken back, or the sum of discarding panes."""
    result: dict[tuple[str, int, int], float] = {}
    for _, key, start, end, *_, total in sorted(panes, key=lambda p: (p[4], not p[0])):
        window = key, start, end
        result[window] = total + (result.get(window, 0.0) if adding else 0.0)
    for back, key, start, end, number, *_ in panes:
        newer = any((k, s, e) == (key, start, end) and n > number for _, k, s, e, n, *_ in panes)
        if back and not newer:
            del result[key, start, end]
    return result


def stream(text: str) -> tuple[TestStream, dict[str, int]]:
    """The input of a scenario, and the number of the micro-batch that brings each action."""
    actions: dict[str, int] = {}
    made = TestStream(T0, partitions=2 if "@1" in text else 1)
    for part in _split(text, "|"):
        step = part.removeprefix("& ")
        if step.startswith("W "):
            when, _, partition = step[2:].partition(" @")
            made = made.advance_watermark(_time(when) - T0, int(partition) if partition else None)
            actions.pop("W " + when, None)
            told = ["W " + when]
        elif step.startswith("C "):
            by, _, partition = step[2:].partition(" @")
            made = made.advance_clock(duration_ms(by + "s"), int(partition) if partition else None)
            told = ["C " + by]
        else:
            partition = 1 if step.startswith("@1") else 0
            told = _split(step.removeprefix("@1 "), ",")
            made = made.add(*map(_item, told), partition=partition)
        made = made.as_one_batch(2) if part.startswith("& ") else made
        number = len(made.batches) - 1 - sum(item in "!~" for item in told[:-1])
        for item in told:
            if item in "!~":
                number += 1
            else:
                actions[new_name(item, actions)] = number
    return made, actions


def new_name(action: str, actions: Mapping[str, int]) -> str:
    """What an action is called beside those before it: the second one of a name has `` #2`` behind it."""
    name, count = action, 1
    while name in actions:
        count += 1
        name = f"{action} #{count}"
    return name


def brought(action: str, actions: Mapping[str, int]) -> int:
    """The number of the micro-batch that brings an action; a watermark also comes with the first one beyond it."""
    if action.startswith("W ") and action not in actions:
        beyond = [name for name in actions if name.startswith("W ") and _time(name[2:]) > _time(action[2:])]
        action = min(beyond, key=lambda name: _time(name[2:]))
    return actions[action]


def firings_of(expect: str, actions: Mapping[str, int], batches: int) -> list[list[str]]:
    """For each micro-batch the lines of an expectation that say what it writes."""
    firings: list[list[str]] = [[] for _ in range(batches)]
    number = 0
    for line in _split(expect, "|"):
        action, marked, rest = line.rpartition("] ")
        number = brought(action.removeprefix("["), actions) if marked else number
        firings[number].append(rest)
    return firings


def _item(text: str) -> Any:
    return {"!": ABORT, "~": RESTART}.get(text) or _record(text)


def _record(text: str) -> dict[str, Any]:
    key, _, rest = text.partition(" ")
    time, _, value = rest.partition("=")
    return event(key, _time(time), float(value))


def _pane(text: str) -> Pane:
    match = _PANE.fullmatch(text)
    if not match:
        raise ValueError(f"no pane: {text!r}")
    back, key, ever, start, end, number, timing, revision, total = match.groups()
    span = (NEVER, END_OF_TIME) if ever else (_time(start), _time(end))
    return bool(back), key, *span, int(number), timing, int(revision), float(total)


def _time(text: str) -> int:
    if "T" in text:
        return epoch_ms(text)
    if text.endswith("h"):
        return T0 + duration_ms(text)
    return epoch_ms(DAY + text) if ":" in text else T0 + round(float(text) * 1000)


def _value(text: str) -> Any:
    return eval(text, {"__builtins__": {}}, _NAMES)


def _split(text: str, by: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", " ").split(by) if part.strip()]
