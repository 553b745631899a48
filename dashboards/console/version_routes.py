"""What the console answers about the versions of the chain, and about the comparison of two of them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from dashboards.console.versions import Comparisons, Versions
from engine.clock import now_ms

_LONGEST = 100

Name = Annotated[str, Query(min_length=1, max_length=_LONGEST)]


class _Both(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    first: Annotated[str, Field(min_length=1, max_length=_LONGEST)]
    second: Annotated[str, Field(min_length=1, max_length=_LONGEST)]


def version_routes(versions: Versions | None) -> APIRouter:
    """The paths ``/api/versions``, ``/api/comparison`` and ``/api/comparison/difference``.

    Args:
        versions: Lists and compares versions; ``None``: this console knows none.
    """
    api = APIRouter(prefix="/api")
    comparisons = Comparisons(versions) if versions else None

    def all_comparisons() -> Comparisons:
        if comparisons is None:
            raise HTTPException(404, "this console knows no versions")
        return comparisons

    @api.get("/versions")
    def listed() -> dict[str, Any]:
        rows = versions.listed() if versions else []
        return {"now": now_ms(), "known": versions is not None, "versions": rows}

    @api.post("/comparison")
    def begin(both: _Both) -> dict[str, Any]:
        all_comparisons().begin(both.first, both.second)
        return all_comparisons().state(both.first, both.second) | {"found": None}

    @api.get("/comparison")
    def comparison(first: Name, second: Name) -> dict[str, Any]:
        work = all_comparisons().state(first, second)
        if (figures := work["found"]) is not None:
            work |= {"found": {**figures, "differences": [_without_points(one) for one in figures["differences"]]}}
        return work | {"now": now_ms()}

    @api.get("/comparison/difference")
    def difference(first: Name, second: Name, at: Annotated[int, Query(ge=0, le=1_000)]) -> dict[str, Any]:
        figures = all_comparisons().state(first, second)["found"]
        if figures is None or at >= len(figures["differences"]):
            raise HTTPException(404, "there is no such difference; the versions may have been compared anew")
        return dict(figures["differences"][at])

    return api


def _without_points(difference: dict[str, Any]) -> dict[str, Any]:
    """A difference without its series, which are asked for when a reader opens it."""
    versions = [{"version": side["version"], "reason": side["reason"]} for side in difference["versions"]]
    return {**difference, "versions": versions}
