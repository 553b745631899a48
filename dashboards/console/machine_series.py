"""The series of one machine for its page: what is stored of each, completed by what the detector believes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboards.console.belief import judged_value
from dashboards.console.search import Document
from dashboards.console.sparks import Sparks
from pipelines.contracts.records.novelty import JOINED

_VERDICT = ("kind", "typical", "lower", "upper", "record_score", "metric_kind")


def listed(stored: Sequence[Document], believed: Sequence[dict[str, Any]], sparks: Sparks) -> list[Document]:
    """The series of a machine: those in an open incident first, then by the highest score of an alarm, then by name.

    Args:
        stored: The newest document of each series that has one, with ``highest`` and ``spark``.
        believed: What is believed of each series, see `Beliefs.machine`.
        sparks: The time of the small plots.

    Returns:
        Of each series its ``metric``, the newest window (``@timestamp``, ``actual``, ``typical``, ``lower``, ``upper``,
        ``kind``, ``metric_kind``), ``open_since`` while it is in an open incident, ``highest``, ``spark``, and while it
        is learned ``windows`` and ``needed``.
    """
    rows = {document["metric"]: document | {"open_since": _open_since(document)} for document in stored}
    for belief in believed:
        metric, windows, state = belief["metric"], belief["windows"], belief["state"]
        row = rows.setdefault(metric, {"metric": metric, "highest": None, "spark": [], "open_since": None})
        if windows:
            _take_windows(row, windows, sparks, joined=metric == JOINED)
        elif "@timestamp" not in row:
            row.update({name: value for name in ("@timestamp", *_VERDICT) if (value := state.get(name)) is not None})
        if state and state["@timestamp"] >= row.get("@timestamp", 0):
            row["kind"] = state["kind"]
        if state:
            row["open_since"] = _open_since(state)
        if row.setdefault("kind", "learning") == "learning":
            seen = len(windows) or (state or {}).get("values", 0)  # a machine as a whole has no windows of its own
            row.update(windows=min(seen, belief["needed"]), needed=belief["needed"])
    return sorted(rows.values(), key=_order)


def _take_windows(row: Document, windows: Sequence[Document], sparks: Sparks, *, joined: bool) -> None:
    newest = windows[-1]
    if newest["window_end"] >= row.get("@timestamp", 0):
        known = {name: newest[name] for name in _VERDICT if newest.get(name) is not None}
        row.update({"@timestamp": newest["window_end"], "actual": judged_value(newest), **known})
    if not joined:
        row["spark"] = sparks.of((window["window_end"], judged_value(window)) for window in windows) or row["spark"]


def _open_since(verdict: Document) -> int | None:
    """Since when the series of a document or a state is in an open incident; ``None`` if it is in none."""
    return verdict.get("since") if verdict.get("incident.state") == "open" else None


def _order(row: Document) -> tuple[bool, float, str]:
    highest = row["highest"]
    return row["open_since"] is None, 0.0 if highest is None else -highest, row["metric"]
