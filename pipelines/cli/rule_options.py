"""The options of ``newnormal rule add``: the windows to which a rule applies, and its effects on them.

The decorator `defines_a_rule` gives a command these options; the command gets them as one argument, ``options``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from pipelines.cli.option_set import option_set
from pipelines.contracts.limits import limit

_HOW = "in the unit of the metric, or 95%, or 20G"


@dataclass(frozen=True)
class RuleOptions:
    """What the options say.

    Args:
        fields: The fields of the rule, by name.
        percentages: The options that compare values with a percentage, and so must be about ratios.
    """

    fields: dict[str, object]
    percentages: tuple[str, ...] = ()


def _options(
    *,
    entity: Annotated[str, typer.Option(help="The machines, as a glob of * and ?.")] = "*",
    metric: Annotated[
        str, typer.Option(help="The metrics, as a glob; * also matches _machine, the joined verdict.")
    ] = "*",
    dates: Annotated[
        list[str] | None, typer.Option("--date", help="The rule applies only on this day, YYYY-MM-DD; repeatable.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="IANA name of the time zone of the days.")] = "UTC",
    above: Annotated[str | None, typer.Option(help=f"The rule applies only to values above this one, {_HOW}.")] = None,
    below: Annotated[str | None, typer.Option(help=f"The rule applies only to values below this one, {_HOW}.")] = None,
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
        str | None, typer.Option(help=f"Report only values that differ from the typical one by this or more, {_HOW}.")
    ] = None,
    min_change_share: Annotated[
        str | None, typer.Option(help="The same as --min-change, as a share of the typical value: 0.1 or 10%.")
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Write the verdicts on all windows, also with detector.emit = context.")
    ] = False,
) -> RuleOptions:
    """The fields of a rule that the options give.

    Raises:
        NewnormalError: ``RULE_INVALID`` if a limit is none.
    """
    texts = {"above": above, "below": below, "min_change": min_change, "min_change_share": min_change_share}
    read = {name: limit(text, _option(name)) for name, text in texts.items() if text is not None}
    percentages = tuple(_option(name) for name, it in read.items() if it.percent and name != "min_change_share")
    fields = {
        "entity": entity,
        "metric": metric,
        "dates": dates,
        "timezone": timezone,
        "skip_result": skip_result,
        "skip_learning": skip_learning,
        "report": report,
        "weekend": weekend,
        "only": only,
        "store": store,
    }
    return RuleOptions(fields | {name: it.value for name, it in read.items()}, percentages)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


defines_a_rule = option_set("options", _options)
"""A decorator: gives a command the options of a rule; the command gets a `RuleOptions` as its argument ``options``."""
