"""Where recorded faults of services began, as incidents say it, beside two simple rankings of the same novelties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.evaluation import show
from tests.benchmarks.measures.causes import Answer, answers, calibration, hits
from tests.benchmarks.measures.faults import recordings


def run(data: Path, out: Path) -> dict[str, Any]:
    """Plays each recording, prints its table and that of shares, writes ``out/causes.json``; returns the figures."""
    settings = load()
    figures: dict[str, Any] = {}
    every: list[Answer] = []
    for recording in recordings(data):
        with show.bar(recording.name) as progress:
            found = []
            for each in answers(recording, settings):
                found.append(each)
                progress(sum(a.fault is not None for a in found), len(recording.faults))
        figures[recording.name] = _of(recording.name, found)
        every += found
    if not figures:
        what = f"{data} has neither petshop/*/graph.csv nor nezha/*/*fault_list.json"
        raise NewnormalError("FILE_UNUSABLE", what, "option --data", "a folder with petshop/ or nezha/")
    rows = calibration(every)
    show.table("shares: as said, and as often as right", ["share", "number", "said", "right"], rows)
    figures["calibration"] = [dict(zip(("share", "number", "said", "right"), row, strict=True)) for row in rows]
    show.write(out, "causes", figures)
    return figures


def _of(name: str, found: list[Answer]) -> dict[str, Any]:
    faults, quiet = ([a for a in found if (a.fault is None) is still] for still in (False, True))
    told = sum(a.incident is not None for a in faults)
    tops = hits(found)
    none = {
        "incidents when nothing was wrong": len(quiet),
        "of these, none of their machines is the likeliest": sum(a.none_first for a in quiet),
        "of those of faults, none of their machines is the likeliest": sum(a.none_first for a in faults),
        "of these, rightly": sum(a.none_first and a.shares[-1][1] for a in faults),
    }
    show.table(
        f"{name}: {len(faults)} faults, an incident in {told}",
        ["the cause is", "first", "of the first 3", "of the first 5"],
        [[ranking, *shares] for ranking, shares in tops.items()],
    )
    show.table("none of these", ["", "number"], list(none.items()))
    each = {a.fault.name: [a.fault.cause, *a.named] for a in faults if a.fault is not None}
    return {"faults": len(faults), "told": told, "found": tops, "none": none, "each": each}
