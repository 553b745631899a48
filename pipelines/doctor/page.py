"""Generates the table of findings in docs/troubleshooting.md from the kinds of findings that the checks register."""

from __future__ import annotations

import itertools

import pipelines.doctor.examination  # noqa: F401  its import registers the kinds of all checks
from pipelines.doctor.finding import KINDS, Severity

BEGIN = "<!-- findings: written by `newnormal docs` from pipelines/doctor -->"
END = "<!-- end of the findings -->"
_ORDER = list(Severity)


def with_findings(page: str) -> str:
    """A page with the present table between `BEGIN` and `END`; a page without these lines stays as it is."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n\n{tables()}\n{end}{after}" if begin and end else page


def tables() -> str:
    """A table of findings for each subject, the worst first."""
    kinds = sorted(KINDS.values(), key=lambda each: (each.subject, _ORDER.index(each.severity), each.code))
    parts = []
    for title, group in itertools.groupby(kinds, key=lambda each: each.subject):
        rows = [f"| `{each.code}` | {each.severity} | {each.means} | {each.do} |\n" for each in group]
        head = "| code | severity | what was found | what to do |\n| --- | --- | --- | --- |\n"
        parts.append(f"### {title}\n\n{head}{''.join(rows)}")
    return "\n".join(parts)
