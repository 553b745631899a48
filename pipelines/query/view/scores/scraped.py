"""What the view tells a Prometheus that scrapes it: the newest scores, and what is missing in them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse

from engine.spec.duration import NEVER
from pipelines.contracts.setting_types import SeriesGlobs
from pipelines.query.view.answers import Answers
from pipelines.query.view.scores.columns import Chosen, Scores, scores
from pipelines.query.view.scores.exposition import exposition
from pipelines.query.view.scores.judged import judged
from pipelines.query.view.scores.sender import chosen
from pipelines.query.view.scores.sent import Sent, sent
from pipelines.query.view.windows import Ring

Gauges = dict[str, tuple[str, float]]
"""Text and value of gauges, by name."""


def score_routes(view: Answers, folder: Path | None) -> APIRouter:
    """The path ``/scores/metrics``.

    Args:
        view: The view.
        folder: The folder of its part, which says how far scores were pushed; ``None``: they are not.
    """
    routes, ring, usual = APIRouter(), Ring(view.settings), chosen(view.settings)

    @routes.get("/scores/metrics", summary="scores as series for Prometheus", response_class=PlainTextResponse)
    def scraped(
        request: Request,
        series: Annotated[SeriesGlobs, Query(description="globs machine/metric; empty: scores.series")] = "",
        novel: Annotated[bool | None, Query(description="only what is novel; by default scores.novel")] = None,
        most: Annotated[int, Query(ge=1, description="at most so many series, and scores.most")] = usual.most,
    ) -> Response:
        wanted = Chosen(
            tuple(series.split(",")) if series else usual.globs,
            usual.novel if novel is None else novel,
            min(most, usual.most),
        )
        until = judged(view.progress(), len(view.own_partitions()))
        found = scores(view.database, ring, wanted, until)
        whole = _whole(found, until) | (_pushed(sent(folder)) if folder else {})
        body, kind = exposition(found.rows, view.settings.version, whole, request.headers.get("accept", ""))
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(gzip.compress(body, 1), headers={"Content-Encoding": "gzip"}, media_type=kind)
        return Response(body, media_type=kind)

    return routes


def _whole(found: Scores, until: int) -> Gauges:
    """How many series are told, and of when."""
    whole = {
        "newnormal_scores_series": ("Series that are told here", float(found.rows.height)),
        "newnormal_scores_left_out": (
            "Series that are missing, as there are more than the bound",
            float(found.left_out),
        ),
    }
    about = "Event time up to which the detector has judged"
    return whole if until == NEVER else whole | {"newnormal_scores_event_time_seconds": (about, until / 1000)}


def _pushed(far: Sent | None) -> Gauges:
    """How far scores were pushed by remote write, if they are."""
    if far is None:
        return {}
    failing = float(far.failing_since is not None)
    gauges = {
        "newnormal_scores_pushed_samples": ("Samples that the receiver of remote write has taken", float(far.samples)),
        "newnormal_scores_refused_samples": ("Samples that it refused, and that are lost", float(far.refused)),
        "newnormal_scores_skipped_windows": ("Windows that were forgotten before they were pushed", float(far.skipped)),
        "newnormal_scores_push_failing": ("1 while the receiver does not answer, else 0", failing),
    }
    if far.until is not None:
        about = "Event time up to which was pushed"
        gauges["newnormal_scores_pushed_event_time_seconds"] = (about, far.until / 1000)
    return gauges
