"""What tests of scores share: a view with messages in it, and what follows from all messages, computed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.query.view import progress
from pipelines.query.view.answers import Answers
from pipelines.query.view.database import Database
from pipelines.query.view.keys import names
from pipelines.query.view.part import Part
from pipelines.query.view.states import StateMessage, take_states
from pipelines.query.view.windows import Ring, newest

T0, STEP = 1_700_000_000_000, 10_000

Message = dict[str, Any]
Labels = tuple[tuple[str, str], ...]
NAMES = {
    "newnormal_score": "record_score", "newnormal_state_score": "state_score", "newnormal_typical": "typical",
    "newnormal_lower": "lower", "newnormal_upper": "upper",
}  # fmt: skip


def said(entity: str, metric: str, number: int, kind: str = "normal", score: float = 1.0, **more: Any) -> Message:
    """A belief on a window, or a verdict: the window's number is from 0."""
    whole = {"host.name": entity, "metric": metric, "window_start": T0 + number * STEP, "kind": kind}
    state = {"incident.state": "open"} if kind in ("anomaly", "state_change") else {}
    return whole | {"@timestamp": T0 + (number + 1) * STEP, "record_score": score, "values": number} | state | more


def expected(beliefs: Sequence[Message], verdicts: Sequence[Message], window: int) -> dict[Labels, float]:
    """The value of each series for Prometheus as of a window, one series after the other."""
    end, told = T0 + (window + 1) * STEP, {}
    for series in {(each["host.name"], each["metric"]) for each in beliefs}:
        mine = [each for each in beliefs if (each["host.name"], each["metric"]) == series and each["@timestamp"] <= end]
        if not mine:
            continue
        belief = max(mine, key=lambda each: each["@timestamp"])
        if belief["kind"] == "absence" and belief.get("incident.state") == "closed":
            continue
        judged = {v["@timestamp"]: v for v in verdicts if (v["host.name"], v["metric"]) == series}
        then = judged.get(belief["@timestamp"], {})
        is_open = belief.get("incident.state") == "open"
        whole = {"state_score": then.get("state_score", None if is_open else 0.0)} | judged.get(end, belief)
        whole.setdefault("state_score", then.get("state_score", None if is_open else 0.0))
        labels = (("machine", series[0]), ("metric", series[1]), ("version", "v1"))
        for name, field in NAMES.items():
            if whole.get(field) is not None:
                told[("__name__", name), *labels] = whole[field]
        told[("__name__", "newnormal_incidents_open"), *labels] = float(is_open)
    return told


def history(windows: int, series: int, seed: int) -> tuple[list[Message], list[Message]]:
    """Beliefs that change now and then, and verdicts on each window of an incident and some windows around it."""
    rng, beliefs, verdicts = np.random.default_rng(seed), [], []
    for number in range(series):
        entity, metric = f"web-{number % 7}", f"cpu.{number}"
        begins, length = rng.integers(2, windows - 2), rng.integers(1, 8)
        for window in range(windows):
            inside = begins <= window < begins + length
            kind = "anomaly" if inside else "normal"
            score = float(np.round(rng.uniform(60, 100) if inside else rng.uniform(0, 20), 3))
            band = {"typical": float(window), "lower": window - 1.5, "upper": window + 1.5}
            if window in (0, begins, begins + length) or rng.random() < 0.1:
                beliefs.append(said(entity, metric, window, kind, score, **band))
            if begins - 2 <= window < begins + length + 2:
                state = {"state_score": float(np.round(rng.uniform(1, 100), 3)) if inside else 0.0}
                verdicts.append(said(entity, metric, window, kind, score, **band, **state))
    return sorted(beliefs, key=lambda each: each["@timestamp"]), verdicts


class Stored(Answers):
    """A view whose database has messages without a Kafka, as the follower stores them.

    Args:
        folder: For its database.
    """

    def __init__(self, folder: Path, **given: Any) -> None:
        super().__init__(Database(folder / "data"), load(**{"view.windows": 100, **given}), 1, Part())
        self.folder, self._ring = folder, Ring(self.settings)

    def write(self, beliefs: Sequence[Message], verdicts: Sequence[Message], windows: range) -> None:
        """Stores what was said of some windows, and that they are judged."""
        ends = {T0 + (number + 1) * STEP for number in windows}
        self.say([each for each in beliefs if each["@timestamp"] in ends])
        self.judge([each for each in verdicts if each["@timestamp"] in ends], windows.stop)

    def say(self, beliefs: Sequence[Message]) -> None:
        """Stores beliefs."""
        last = {names(s["host.name"], s["metric"]): StateMessage(0, orjson.dumps(s)) for s in beliefs}
        puts, gone = dict(self._ring.belief(each) for each in beliefs), set[bytes]()
        take_states(self.database, last, {0: Counter()}, puts, gone)
        self.database.write(puts.items(), gone)

    def judge(self, verdicts: Sequence[Message], until: int) -> None:
        """Stores verdicts, and that the windows before a number are judged."""
        read = [(progress.key(topic, 0), progress.Progress().stored()) for topic in (topics.STATE, topics.NOVELTIES)]
        mark = progress.Progress(watermark=T0 + until * STEP, written=until).stored()
        stored = newest((self._ring.verdict(orjson.dumps(each)) for each in verdicts), self.database)
        self.database.write([*stored.items(), *read, (progress.key(topics.NEWS, 0), mark)])
