"""The settings of the section `scores`: which scores the state view tells Prometheus, and where it pushes them."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field

from pipelines.contracts.setting_types import FilePath, HeaderText, SeriesGlobs, WebAddress, Whole
from pipelines.contracts.settings.section import Section


class ScoresSettings(Section):
    series: SeriesGlobs = Field(
        "*/*",
        description="globs `machine/metric` of the series whose scores the state view tells Prometheus, separated by "
        "commas; `?` also stands for a comma",
    )
    novel: bool = Field(False, description="whether only series are told that are novel: an alarm, or an open incident")
    most: Whole = Field(
        10_000,
        ge=1,
        le=1_000_000,
        description="the most series that are told, those that are novel first; `newnormal_scores_left_out` counts the "
        "others",
    )
    remote_write_url: WebAddress = Field(
        None,
        description="where `newnormal view` pushes the scores by Prometheus' remote write, e.g. "
        "http://prometheus:9090/api/v1/write; empty: nowhere",
    )
    remote_write_authorization_file: FilePath = Field(
        "",
        description="file with the value of the header `Authorization` for it in one line, e.g. `Bearer TOKEN`; it is "
        "read at each start",
    )
    remote_write_tenant: HeaderText = Field(
        "", description="value of the header `X-Scope-OrgID` for it, which names a tenant of Mimir, Cortex or Thanos"
    )


def contradictions(scores: ScoresSettings) -> dict[str, tuple[str, str]]:
    """What contradicts another setting: for each setting what is wrong, and what is accepted."""
    wrong = {}
    for name in ("remote_write_authorization_file", "remote_write_tenant"):
        if getattr(scores, name) and not scores.remote_write_url:
            wrong[f"scores.{name}"] = (
                f"scores.{name} is given, but scores.remote_write_url is not",
                "both, or neither",
            )
    if scores.remote_write_url and "@" in urlsplit(scores.remote_write_url).netloc:
        what = "scores.remote_write_url has a user or a password in it"
        wrong["scores.remote_write_url"] = (what, "the URL alone, and scores.remote_write_authorization_file")
    return wrong
