"""Generates the table of ACLs in docs/security.md from the definitions of the jobs."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.contracts.settings import Settings
from pipelines.jobs import LINKS
from pipelines.runtime.acls import Acl, of_agents, of_console, of_job, of_operators

BEGIN = "<!-- acls: written by `newnormal docs` from pipelines/runtime/acls.py -->"
END = "<!-- end of the acls -->"


def with_acls(page: str) -> str:
    """A page with the present table between `BEGIN` and `END`; a page without these lines stays as it is."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n\n{table()}\n{end}{after}" if begin and end else page


def table() -> str:
    """A row for each job, for consoles, operators and agents: topics, groups and transactional ids."""
    settings = Settings.model_construct()
    rows = [(f"`{name}`", of_job(name, settings)) for name in LINKS]
    rows += [
        ("the console beside the detector", of_console(settings)),
        ("operators", of_operators(settings)),
        ("agents", of_agents(settings)),
    ]
    head = "| who | `Read` on topics | `Write` on topics | `Read` on groups | `Write` on transactional ids |\n"
    lines = [f"| {who} | {' | '.join(_cells(acls))} |\n" for who, acls in rows]
    return head + "| --- | --- | --- | --- | --- |\n" + "".join(lines)


def _cells(acls: Iterable[Acl]) -> list[str]:
    columns = (("topic", "Read"), ("topic", "Write"), ("group", "Read"), ("transactional-id", "Write"))
    names = [[_name(acl) for acl in acls if (acl.resource, acl.operation) == column] for column in columns]
    return [", ".join(dict.fromkeys(each)) for each in names]


def _name(acl: Acl) -> str:
    return f"`{acl.name}{'*' if acl.prefix else ''}`"
