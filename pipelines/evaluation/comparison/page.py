"""Writes a comparison as one HTML page for operators; it needs no other file and no network."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from engine.printing import visible
from engine.spec.duration import iso
from pipelines.evaluation import plots
from pipelines.evaluation.comparison.alarms import OUTCOMES, counts
from pipelines.evaluation.comparison.comparison import GROUPS, Comparison, Difference, around
from pipelines.evaluation.comparison.words import called, compared, figure, headline, incidents, quality

_ROWS = 20
_MARGIN_WINDOWS, _LONGEST_WINDOWS = 60, 1_500
_HEADINGS = {
    "new": "new: raised by {1} only",
    "gone": "gone: raised by {0} only",
    "changed": "changed: another kind",
    "moved": "moved: same kind, other windows",
    "same": "the same",
}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1,h2,h3{line-height:1.25}h2{margin-top:2.2rem;border-bottom:1px solid #ddd}
table{border-collapse:collapse;margin:.8rem 0}th,td{padding:.25rem .7rem;border-bottom:1px solid #e5e5e5}
th{text-align:left;font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
img{max-width:100%;height:auto}section.difference{margin:1.6rem 0;padding:.4rem 1rem 1rem;border:1px solid #ddd}
.note{color:#555}.lead{font-size:1.1rem}li{margin:.3rem 0;overflow-wrap:anywhere}
"""


def page(comparison: Comparison, now: int) -> str:
    """The page.

    Args:
        comparison: The comparison.
        now: When it is written, epoch milliseconds.
    """
    names = [version.name for version in comparison.versions]
    summary, numbers, only = incidents(comparison)
    title = f"{names[0]} and {names[1]} compared"
    parts = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="lead">{_text(summary)}</p>',
        *([_table(["incidents", *names], numbers)] if numbers else []),
        *(["<ul>", *(f"<li>{_text(each)}</li>" for each in only), "</ul>"] if only else []),
        f'<p class="lead">{_text(headline(comparison))}</p>',
        "<ul>",
        *(f"<li>{_text(sentence)}</li>" for sentence in compared(comparison)),
        "</ul>",
        "<h2>Alarms</h2>",
        "<p>An alarm is a time in which one metric of one machine was news that an operator should look at. Alarms of "
        "the two versions that lie in one incident, or fewer than 12 windows apart, are the same alarm.</p>",
        *(part for by in GROUPS for part in _group(comparison, by, names)),
        "<h2>Which version is right</h2>",
        *_quality(comparison, names),
        "<h2>The differences that tell most</h2>",
        *_differences(comparison, names),
        f'<p class="note">Written at {_text(iso(now))} by newnormal compare. All times are UTC.</p>',
    ]
    head = f'<meta charset="utf-8"><title>{_text(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _group(comparison: Comparison, by: str, names: Sequence[str]) -> list[str]:
    table = counts(comparison.alarms, by)
    if not table.height:
        return [f"<p>Neither version raised an alarm, so there is none by {GROUPS[by]}.</p>"]
    heads = [GROUPS[by], names[0], names[1], *(_HEADINGS[outcome].format(*names) for outcome in OUTCOMES)]
    rows = [[called(str(row[0])) if by == "kind" else row[0], *row[1:]] for row in table.head(_ROWS).rows()]
    more = table.height - len(rows)
    note = [f'<p class="note">{more} more without or with fewer differences are not shown.</p>'] if more > 0 else []
    return [f"<h3>By {GROUPS[by]}</h3>", _table(heads, rows), *note]


def _quality(comparison: Comparison, names: Sequence[str]) -> list[str]:
    rows, notes = quality(comparison)
    return [*([_table(["", *names], rows)] if rows else []), *(f"<p>{_text(note)}</p>" for note in notes)]


def _differences(comparison: Comparison, names: Sequence[str]) -> list[str]:
    if not comparison.differences:
        return ["<p>No alarm differs.</p>"]
    rule = (
        "They are ordered by how far the highest scores of the two versions are apart; new and gone alarms and those "
        "of another kind come before those that only moved. Each further difference of a machine, a metric, or an "
        "outcome and kind that is already shown counts half, so that different ones are shown."
    )
    return [
        f"<p>{rule}</p>",
        *(_difference(comparison, each, names, at) for at, each in enumerate(comparison.differences, 1)),
    ]


def _difference(comparison: Comparison, difference: Difference, names: Sequence[str], at: int) -> str:
    alarm = difference.alarm
    what = _HEADINGS[alarm["outcome"]].format(*names)
    heading = f"{at}. {alarm['metric']} of {alarm['entity']} — {what}"
    when = f"{iso(alarm['start'])} to {iso(alarm['end'])}"
    reasons = "".join(f"<li>{_text(reason)}</li>" for reason in difference.reasons)
    image = base64.b64encode(_plot(comparison, alarm)).decode()
    alternative = _text(f"Values, expected bands and scores of both versions, {when}")
    return (
        f'<section class="difference"><h3>{_text(heading)}</h3><p class="note">{_text(when)}</p>'
        f'<img alt="{alternative}" src="data:image/svg+xml;base64,{image}"><ul>{reasons}</ul></section>'
    )


def _plot(comparison: Comparison, alarm: dict[str, Any]) -> bytes:
    step = comparison.times.step
    shown = {**alarm, "end": min(alarm["end"], alarm["start"] + _LONGEST_WINDOWS * step)}
    versions = [
        (version.name, around(version.verdicts, shown, _MARGIN_WINDOWS * step), version.threshold)
        for version in comparison.versions
    ]
    out = io.BytesIO()
    plots.difference(versions, (alarm["start"], shown["end"]), alarm["metric"], out)
    return out.getvalue()


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def line(cells: Sequence[object], tag: str) -> str:
        tags = [f"{tag} class=n" if place else tag for place in range(len(cells))]
        inside = (f"<{open_}>{_text(cell)}</{tag}>" for open_, cell in zip(tags, cells, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    body = "".join(line([figure(cell) for cell in row], "td") for row in rows)
    return f"<table><thead>{line(heads, 'th')}</thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    """Text of any origin as HTML that shows it as it is."""
    return escape(visible(value))
