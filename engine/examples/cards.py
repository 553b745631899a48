"""Card velocity: each payment gets an answer; a card at two terminals too distant to travel between is declined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from engine.aggregates import Count, Sum
from engine.examples.kit import T0, Came, Play, Row, Runner, here, job, record, source
from engine.operators.callback import EachKey, KeyCallback, Timer
from engine.operators.process import Process
from engine.stream import Stream
from engine.windows import Tumbling

FASTEST = 900.0
"""Fastest possible travel, km/h: an airliner."""
CITIES = {"Stockholm": (59.33, 18.07), "Madrid": (40.42, -3.70), "Athens": (37.98, 23.73), "Dublin": (53.35, -6.26)}
MINUTE = 60_000
Payment = record("Payment", "card", time=int, city=str, lat=float, lon=float)
Decision = record("Decision", "card", time=int, approved=bool, city_from=str, city_to=str, speed=float)
PerCity = record("PerCity", "city_to", window_start=int, window_end=int, payments=int, declined=int)


@dataclass(frozen=True)
class Payments:
    """The payments, the answer to each, and the counts of answers in each city by a second consumer."""

    came: list[Came]
    decisions: list[Row]
    per_city: list[Row]


class Velocity(KeyCallback):
    """Compares each payment of a card with the last one that was approved."""

    def on_record(self, record: Row, state: Row, timer: Timer) -> Iterable[Row]:
        """Declines a payment that is too far away to travel to; the place of the card then stays as it was."""
        here, now, speed = (record["lat"], record["lon"]), timer.now, 0.0
        if state:
            hours = max(now - state["at"], 1000) / 3_600_000
            speed = distance(state["place"], here) / hours
        approved = speed <= FASTEST
        yield {
            "approved": approved,
            "city_from": state.get("city", record["city"]),
            "city_to": record["city"],
            "speed": speed,
        }
        if approved:
            state.update(place=here, at=now, city=record["city"])


def distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Kilometres along a great circle, of degrees of latitude and longitude."""
    (lat, lon), (lat2, lon2) = np.radians(a), np.radians(b)
    h = np.sin((lat2 - lat) / 2) ** 2 + np.cos(lat) * np.cos(lat2) * np.sin((lon2 - lon) / 2) ** 2
    return float(6371 * 2 * np.arcsin(np.sqrt(h)))


def payments() -> list[Came]:
    """Cards that stay at home, one that flies to Madrid in four hours, one that is in Athens 20 minutes later."""
    rng, trips = np.random.default_rng(2), []
    for number, city in enumerate(["Stockholm", "Dublin", "Madrid"]):
        trips += [(f"card-{number}", city, minute) for minute in range(0, 400, 35)]
    trips += [("flies", "Stockholm", 0), ("flies", "Madrid", 240), ("stolen", "Dublin", 100), ("stolen", "Athens", 120)]
    came = []
    for card, city, minute in trips:
        lat, lon = CITIES[city]
        time = T0 + minute * MINUTE
        row = {"time": time, "card": card, "city": city, "lat": lat, "lon": lon}
        came.append((time + int(rng.integers(0, 5 * MINUTE)), "payments", row))
    return came


def compute(run: Runner = here) -> Payments:
    """Payments in, decisions out to a topic; and a second job that counts the decisions by hour and city."""
    came, velocity = payments(), Process(EachKey(Velocity(), ("city", "lat", "lon")), idle_after="1d")
    answers = Stream.read(source("payments", Payment, "5m")).key_by("card").process(velocity)
    decisions = Stream.read(source("decisions", Decision)).map(declined="cast(not approved as bigint)")
    hours = decisions.key_by("city_to").window(Tumbling("1h")).aggregate(payments=Count(), declined=Sum("declined"))
    plays = {
        "decisions": Play(job(answers, Decision, "decisions"), came, every=10 * MINUTE),
        "cities": Play(job(hours, PerCity, "cities"), every=10 * MINUTE, reads=("decisions",)),
    }
    results = run(plays)
    return Payments(came, results["decisions"], results["cities"])


def plot(payments: Payments, figure: Figure) -> None:
    """The map, with what is impossible in red; below it the payments of each hour, declined ones in red."""
    axes, below = figure.subplots(2, 1, height_ratios=(3, 1))
    for name, (lat, lon) in CITIES.items():
        n = sum(paid["city"] == name for _, _, paid in payments.came)
        axes.scatter(lon, lat, 20 * n)
        axes.annotate(f"{name}: {n} payments", (lon, lat), xytext=(6, 6), textcoords="offset points")
    for row in (row for row in payments.decisions if not row["approved"]):
        (lat, lon), (lat2, lon2) = CITIES[row["city_from"]], CITIES[row["city_to"]]
        axes.annotate("", (lon2, lat2), (lon, lat), arrowprops={"arrowstyle": "->", "color": "red"})
        axes.text((lon + lon2) / 2, (lat + lat2) / 2, f"{row['card']}: {row['speed']:.0f} km/h", color="red")
    axes.set(title="one card, two terminals: declined", xlabel="longitude", ylabel="latitude")
    hours = sorted({row["window_start"] for row in payments.per_city})
    for name, color in (("payments", "C0"), ("declined", "red")):
        sums = [sum(row[name] for row in payments.per_city if row["window_start"] == hour) for hour in hours]
        below.bar([(hour - T0) / 3_600_000 for hour in hours], sums, width=0.8, color=color, label=name)
    below.set(xlabel="hour", ylabel="payments")
    below.legend()
