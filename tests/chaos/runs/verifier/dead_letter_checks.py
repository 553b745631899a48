"""The dead letters must be the messages that could not be used, once each, with the documented code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.chaos.runs.verifier.finding import Tally

Place = tuple[str, int, int]


def check_dead_letters(tally: Tally, letters: Iterable[Mapping[str, Any]], refused: Mapping[Place, str]) -> None:
    """Compares the topic `deadletter` with the messages that must be in it.

    Args:
        tally: Takes the findings.
        letters: The records of the topic.
        refused: The code of each message that cannot be used, by topic, partition and offset.
    """
    found: dict[Place, list[Mapping[str, Any]]] = {}
    for letter in letters:
        found.setdefault((letter["kafka.topic"], letter["kafka.partition"], letter["kafka.offset"]), []).append(letter)
    tally.add("lost", "deadletter", sorted(refused.keys() - found.keys()))
    unfounded = sorted(found.keys() - refused.keys())
    tally.add(
        "different", "deadletter: a good message", [(*place, found[place][0]["error.code"]) for place in unfounded]
    )
    tally.add("doubled", "deadletter", sorted(place for place, each in found.items() if len(each) > 1))
    both = sorted(refused.keys() & found.keys())
    wrong = [(*place, refused[place], found[place][0]["error.code"]) for place in both]
    wrong = [each for each in wrong if each[-2] != each[-1]]
    tally.add("different", "deadletter: another code", wrong)
    tally.compared["dead letters"] = len(found)
