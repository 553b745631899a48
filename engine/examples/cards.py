"""Card velocity: one card at two distant terminals, sooner than anyone could travel."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from engine.examples.kit import T0, Came, Row, job, play, record, source
from engine.operators.callback import EachKey, KeyCallback, Timer
from engine.operators.process import Process
from engine.stream import Stream

FASTEST = 900.0
"""Kilometres an hour: an airliner."""
CITIES = {"Stockholm": (59.33, 18.07), "Madrid": (40.42, -3.70), "Athens": (37.98, 23.73), "Dublin": (53.35, -6.26)}
MINUTE = 60_000
Payment = record("Payment", "card", time=int, city=str, lat=float, lon=float)
Alert = record("Alert", "card", time=int, city_from=str, city_to=str, speed=float)


class Velocity(KeyCallback):
    """Compares each payment of a card with the one before it."""

    def on_record(self, record: Row, state: Row, timer: Timer) -> Iterable[Row]:
        """The speed between the two, if nobody is so fast."""
        here, now = (record["lat"], record["lon"]), timer.now
        if state:
            hours = max(now - state["at"], 1000) / 3_600_000
            speed = distance(state["place"], here) / hours
            if speed > FASTEST:
                yield {"city_from": state["city"], "city_to": record["city"], "speed": speed}
        state.update(place=here, at=now, city=record["city"])


def distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Kilometres along a great circle, of degrees of latitude and longitude."""
    (lat, lon), (lat2, lon2) = np.radians(a), np.radians(b)
    h = np.sin((lat2 - lat) / 2) ** 2 + np.cos(lat) * np.cos(lat2) * np.sin((lon2 - lon) / 2) ** 2
    return float(6371 * 2 * np.arcsin(np.sqrt(h)))


def compute() -> tuple[list[Came], list[Row]]:
    """Cards that stay at home, one that flies to Madrid in four hours, one that is in Athens 20 minutes later."""
    rng, trips = np.random.default_rng(2), []
    for number, city in enumerate(["Stockholm", "Dublin", "Madrid"]):
        trips += [(f"card-{number}", city, minute) for minute in range(0, 400, 35)]
    trips += [("flies", "Stockholm", 0), ("flies", "Madrid", 240), ("stolen", "Dublin", 100), ("stolen", "Athens", 120)]
    payments = []
    for card, city, minute in trips:
        lat, lon = CITIES[city]
        time = T0 + minute * MINUTE
        row = {"time": time, "card": card, "city": city, "lat": lat, "lon": lon}
        payments.append((time + int(rng.integers(0, 5 * MINUTE)), "payments", row))
    cards = Stream.read(source("payments", Payment, "5m")).key_by("card")
    velocity = cards.process(Process(EachKey(Velocity(), ("city", "lat", "lon")), idle_after="1d"))
    return payments, play(job(velocity, Alert), payments, every=10 * MINUTE)


def plot(found: tuple[list[Came], list[Row]], figure: Figure) -> None:
    """The map, with what is impossible in red."""
    (payments, alerts), axes = found, figure.subplots()
    for name, (lat, lon) in CITIES.items():
        n = sum(paid["city"] == name for _, _, paid in payments)
        axes.scatter(lon, lat, 20 * n)
        axes.annotate(f"{name}: {n} payments", (lon, lat), xytext=(6, 6), textcoords="offset points")
    for row in alerts:
        (lat, lon), (lat2, lon2) = CITIES[row["city_from"]], CITIES[row["city_to"]]
        axes.annotate("", (lon2, lat2), (lon, lat), arrowprops={"arrowstyle": "->", "color": "red"})
        axes.text((lon + lon2) / 2, (lat + lat2) / 2, f"{row['card']}: {row['speed']:.0f} km/h", color="red")
    axes.set(title="one card, two terminals", xlabel="longitude", ylabel="latitude")
