"""What an operator says of a rule, on the command line or in the console: fields, and limits as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from pipelines.contracts.limits import limit
from pipelines.query.rule_outlook import refuse_percentage_of_no_ratio


@dataclass(frozen=True)
class GivenRule:
    """What was said.

    Args:
        fields: The fields of the rule, by name.
        percentages: The options that compare values with a percentage, and so must be about ratios.
    """

    fields: dict[str, object]
    percentages: tuple[str, ...] = ()

    def refuse_percentages(self, windows: pl.DataFrame) -> None:
        """Refuses percentages for series that are no ratios.

        Args:
            windows: The last windows of the series that the rule matches.

        Raises:
            NewnormalError: ``RULE_INVALID``.
        """
        for option in self.percentages:
            refuse_percentage_of_no_ratio(option, windows)


def given(fields: Mapping[str, object], limits: Mapping[str, str | None]) -> GivenRule:
    """Reads what was said.

    Args:
        fields: The fields of the rule by name, without its limits.
        limits: The texts of ``above``, ``below``, ``min_change`` and ``min_change_share``; ``None``: no limit.

    Raises:
        NewnormalError: ``RULE_INVALID`` if a limit is none.

    >>> given({"metric": "disk.*"}, {"above": "95%", "below": None})
    GivenRule(fields={'metric': 'disk.*', 'above': 0.95}, percentages=('--above',))
    """
    read = {name: limit(text, _option(name)) for name, text in limits.items() if text is not None}
    percentages = tuple(_option(name) for name, it in read.items() if it.percent and name != "min_change_share")
    return GivenRule(dict(fields) | {name: it.value for name, it in read.items()}, percentages)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
