"""The options of ``newnormal rule add``: the windows to which a rule applies, and its effects on them.

The decorator `defines_a_rule` gives a command these options; the command gets them as one argument, ``given``.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.option_set import option_set

Fields = dict[str, object]
"""The fields of a rule, by name."""


def _given(
    *,
    entity: Annotated[str, typer.Option(help="The machines, as a glob of * and ?.")] = "*",
    metric: Annotated[
        str, typer.Option(help="The metrics, as a glob; * also matches _machine, the joined verdict.")
    ] = "*",
    dates: Annotated[
        list[str] | None, typer.Option("--date", help="The rule applies only on this day, YYYY-MM-DD; repeatable.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="IANA name of the time zone of the days.")] = "UTC",
    above: Annotated[float | None, typer.Option(help="The rule applies only to values above this one.")] = None,
    below: Annotated[float | None, typer.Option(help="The rule applies only to values below this one.")] = None,
    skip_result: Annotated[bool, typer.Option("--skip-result", help="Do not report the windows.")] = False,
    skip_learning: Annotated[bool, typer.Option("--skip-learning", help="Do not learn from the windows.")] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Report the windows as an anomaly, whatever their score.")
    ] = False,
    weekend: Annotated[bool, typer.Option("--weekend", help="Treat the windows as those of a weekend.")] = False,
    only: Annotated[
        str | None, typer.Option(help="Report only values above (up) or below (down) the typical one.")
    ] = None,
    min_change: Annotated[
        float | None, typer.Option(help="Report only values that differ from the typical one by this much or more.")
    ] = None,
    min_change_share: Annotated[
        float | None, typer.Option(help="The same as --min-change, as a share of the typical value: 0.1 is 10 %.")
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Write the verdicts on all windows, also with detector.emit = context.")
    ] = False,
) -> Fields:
    """The fields of a rule that the options give."""
    return {
        "entity": entity,
        "metric": metric,
        "dates": dates,
        "timezone": timezone,
        "above": above,
        "below": below,
        "skip_result": skip_result,
        "skip_learning": skip_learning,
        "report": report,
        "weekend": weekend,
        "only": only,
        "min_change": min_change,
        "min_change_share": min_change_share,
        "store": store,
    }


defines_a_rule = option_set("given", _given)
"""A decorator: gives a command the options of a rule; the command gets the rule's fields as its argument ``given``."""
