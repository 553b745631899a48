"""Compares verdicts: with the windows that were judged, with Elasticsearch, and with those of a run without faults."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from tests.chaos.runs.verifier.finding import Tally
from tests.chaos.runs.verifier.window_checks import TOLERANCE

Verdict = Mapping[str, Any]
Identity = tuple[str, str, int, int]
Final = Mapping[Identity, Verdict]
"""The final revision of each verdict."""
JOINED, LOGS = "_machine", "logs"
_DECIDED_LATER = {"event.ingested", "revision"}


def identity(verdict: Verdict) -> Identity:
    """What a verdict is about: machine, metric, start and end of the window."""
    return verdict["host.name"], verdict["metric"], verdict["window_start"], verdict["@timestamp"]


def newest(verdicts: Iterable[Verdict], until: int) -> dict[Identity, Verdict]:
    """The final revision of each verdict on windows that end by a time (epoch milliseconds)."""
    found: dict[Identity, Verdict] = {}
    for verdict in verdicts:
        key = identity(verdict)
        if key[3] <= until and (key not in found or verdict.get("revision", 0) > found[key].get("revision", 0)):
            found[key] = verdict
    return found


def check_verdicts(
    tally: Tally, verdicts: Sequence[Verdict], windows: pl.DataFrame, log_windows: pl.DataFrame, until: int
) -> dict[Identity, Verdict]:
    """Each window has its verdict, and none is written twice.

    Args:
        tally: Takes the findings.
        verdicts: All records of the topic `novelties`.
        windows: The windows of metrics: ``entity``, ``metric``, ``window_start``.
        log_windows: The windows of logs: ``entity``, ``window_start``.
        until: Only windows that end by then are compared, epoch milliseconds.

    Returns:
        The final revision of each verdict.
    """
    written = Counter((*identity(v), v.get("revision", 0)) for v in verdicts if v["@timestamp"] <= until)
    tally.add("doubled", "novelties", sorted(key for key, count in written.items() if count > 1))
    final = newest(verdicts, until)
    judged = {key[:3] for key in final}
    wanted = set(windows.iter_rows()) | {(entity, LOGS, start) for entity, start in log_windows.iter_rows()}
    tally.add("lost", "novelties", sorted(wanted - judged))
    unfounded = {
        key[:3] for key, verdict in final.items() if key[1] != JOINED and verdict["kind"] != "absence"
    } - wanted
    tally.add("different", "novelties: no record is in the window", sorted(unfounded))
    tally.compared["verdicts"] = len(final)
    return final


def check_documents(tally: Tally, documents: Sequence[Verdict], final: Mapping[Identity, Verdict], until: int) -> None:
    """Elasticsearch holds the final revision of each verdict, once."""
    stored = Counter(identity(d) for d in documents if d["@timestamp"] <= until)
    tally.add("doubled", "Elasticsearch", sorted(key for key, count in stored.items() if count > 1))
    tally.add("lost", "Elasticsearch", sorted(final.keys() - stored.keys()))
    tally.add("different", "Elasticsearch: no such verdict", sorted(stored.keys() - final.keys()))
    by_identity = {identity(document): document for document in documents}
    for key in final.keys() & by_identity.keys():
        names = unlike(final[key], by_identity[key], {"event.ingested"})
        if names:
            tally.add("different", "Elasticsearch", [f"{key}: {', '.join(names)}"])
    tally.compared["documents"] = len(stored)


def check_reference(tally: Tally, final: Mapping[Identity, Verdict], reference: Mapping[Identity, Verdict]) -> None:
    """The verdicts equal those of a run without faults: in kind and count, numbers to 1e-9."""
    where = "novelties and reference run"
    tally.add("lost", where, sorted(reference.keys() - final.keys()))
    tally.add("different", f"{where}: only with faults", sorted(final.keys() - reference.keys()))
    wrong = []
    for key in sorted(final.keys() & reference.keys()):
        if names := unlike(reference[key], final[key], _DECIDED_LATER):
            first = names[0]
            values = f"{first} was {final[key].get(first)!r} instead of {reference[key].get(first)!r}"
            wrong.append(f"{key}: {values}; unlike: {', '.join(names)}")
    tally.add("different", where, wrong)
    tally.compared["verdicts of the reference run"] = len(reference)


def unlike(one: Verdict, other: Verdict, ignored: set[str]) -> list[str]:
    """The fields in which two verdicts differ; a field that is absent, null or empty is the same."""
    names = sorted((one.keys() | other.keys()) - ignored)
    return [name for name in names if not _same(one.get(name), other.get(name))]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) or isinstance(other, dict):
        one, other = one or {}, other or {}
        return all(_same(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, list) or isinstance(other, list):
        return list(one or ()) == list(other or ())
    if isinstance(one, float) or isinstance(other, float):
        return None not in (one, other) and math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(one == other)
