"""The commands of `newnormal`: what each is for, where its function is, and the page that explains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """A command.

    Args:
        place: Module of `pipelines.cli` and attribute in it, joined by a colon: a function, or a `typer.Typer` with
            commands of its own.
        page: The page in docs/ that says more.
        passes_on: True for a command that hands its words and options, ``--help`` too, to another program.
        asks_when: True for a command one of whose arguments is a time: ``-2h`` is one, and no unknown option.
    """

    place: str
    page: str
    passes_on: bool = False
    asks_when: bool = False


SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "See it work": {
        "demo": Entry("demo:demo", "operations.md"),
        "score": Entry("score:score", "evaluation.md"),
        "example": Entry("example:example", "engine.md"),
        "services": Entry("services:app", "services.md"),
        "stack": Entry("stack:app", "compose.md"),
    },
    "Operate": {
        "run": Entry("run:run", "operations.md"),
        "status": Entry("status:status", "operations.md"),
        "doctor": Entry("doctor:doctor", "troubleshooting.md"),
        "console": Entry("console:console", "console.md"),
        "view": Entry("view:view", "state-view.md"),
        "notify": Entry("notify:app", "notifications.md"),
        "retention": Entry("retention:retention", "archive.md"),
        "cluster": Entry("cluster:app", "cluster.md"),
        "plan": Entry("plan:plan", "scaling.md"),
        "acls": Entry("acls:acls", "security.md"),
    },
    "Feed": {
        "agent": Entry("datagen:agent", "input.md"),
        "tail-file": Entry("tail_file:tail_file", "input.md"),
        "gateway": Entry("gateway:gateway", "gateway.md"),
        "import": Entry("history:app", "first-week.md"),
        "play": Entry("play:play", "input.md"),
        "simulate": Entry("datagen:simulate", "input.md"),
        "decode": Entry("decode:decode", "input.md"),
        "change": Entry("change:app", "changes.md"),
        "topology": Entry("topology:app", "incidents.md"),
    },
    "Look and answer": {
        "incidents": Entry("incidents:app", "incidents.md"),
        "why-not": Entry("why_not:why_not", "why-no-alert.md", asks_when=True),
        "prove": Entry("prove:prove", "proof.md"),
        "query": Entry("query:app", "state-view.md"),
        "mcp": Entry("mcp:mcp", "ask-in-words.md"),
        "tail": Entry("tail:tail", "records.md"),
        "sql": Entry("sql:sql", "engine.md"),
        "dashboards": Entry("dashboards:app", "kibana.md"),
        "rule": Entry("rule:app", "rules.md"),
        "label": Entry("label:app", "rules.md"),
        "budget": Entry("budget:app", "rules.md"),
        "deadletter": Entry("deadletter:app", "dead-letters.md"),
    },
    "Change and compare": {
        "replay": Entry("replay:replay", "replay.md"),
        "versions": Entry("versions:versions", "replay.md"),
        "promote": Entry("versions:promote", "replay.md"),
        "retire": Entry("versions:retire", "replay.md"),
        "compare": Entry("compare:compare", "compare.md"),
        "savepoint": Entry("savepoint:app", "savepoints.md"),
        "evaluate": Entry("evaluate:evaluate", "evaluation.md"),
    },
    "Develop": {
        "explain-job": Entry("explain:explain_job", "own-jobs.md"),
        "bench": Entry("checkout:bench", "benchmarks.md", passes_on=True),
        "chaos": Entry("checkout:chaos", "chaos.md", passes_on=True),
        "docs": Entry("docs:docs", "../CONTRIBUTING.md"),
    },
}
"""The commands by what a user wants, in the order in which `--help` and docs/commands.md list them."""

COMMANDS: Mapping[str, Entry] = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
"""All commands by name."""
