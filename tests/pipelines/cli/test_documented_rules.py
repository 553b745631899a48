"""Every `newnormal rule add` of README, docs and help is taken, and fits the metrics of our own agent."""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path

import click
import polars as pl
import pytest
import typer

from datagen.agent import Agent
from datagen.simulator.catalogue import METRICS
from pipelines.cli import rule as rules
from pipelines.cli.rule import _options
from pipelines.contracts.globs import matches
from pipelines.contracts.records import Rule
from pipelines.contracts.settings import Settings
from pipelines.query import control_topics
from pipelines.query.rule_outlook import outlook, refuse_percentage_of_no_ratio
from tests.deploy.prometheus import RULES

ROOT = Path(__file__).parents[3]
NOW = int(time.time() * 1000)
_COMMAND = re.compile(r"newnormal rule add [^`\n\[|]+")
_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def documented() -> list[str]:
    """All such commands, once each, with the place of the first."""
    texts = {page: page.read_text(encoding="utf-8") for page in _PAGES}
    texts[Path(rules.__file__)] = rules.add.__doc__ or ""
    found = {each.group().strip(): page.name for page, text in texts.items() for each in _COMMAND.finditer(text)}
    return [command for command in found if " ..." not in command]


COMMANDS = documented()


def read(command: str) -> tuple[Rule, tuple[str, ...]]:
    """The rule that a command makes, and its options that are percentages; no server is asked."""
    group = typer.main.get_command(rules.app)
    assert isinstance(group, click.Group) or hasattr(group, "commands")
    add = group.commands["add"]  # type: ignore[attr-defined]
    given = add.make_context("add", shlex.split(command)[3:]).params
    options = _options(**{name: given[name] for name in _options.__kwdefaults__})
    times = {name: control_topics.instant(given[name], NOW, name) for name in ("start", "end")}
    fields = options.fields | times | {"id": given["name"], "time": times["start"] or NOW}
    return control_topics.checked(Rule, fields, Settings(), NOW), options.percentages


@pytest.fixture(scope="module")
def healthy() -> pl.DataFrame:
    """A window of each series of this machine as the detector would judge it, if it were not full and had memory.

    Then one of each ratio that Prometheus records by our rules (docs/prometheus.md).
    """
    agent = Agent("vm")
    first, then = agent.sample(NOW - 1_000), agent.sample(NOW)
    both = then.join(first.select("metric", before="value"), on="metric")
    rate = pl.when(kind="counter").then(pl.col("value") - pl.col("before")).otherwise("value")
    sound = pl.when(kind="ratio").then(rate.clip(0.0, 0.8)).otherwise(rate)
    sound = pl.when(metric="mem.available").then(sound.clip(1e9)).otherwise(sound)
    agents = both.select("entity", "metric", "kind", value=sound, window_start=NOW - 1_000, window_end=NOW)
    names = [rule["record"] for rule in RULES if rule["record"].endswith(":ratio")]
    recorded = agents.head(1).select("entity", pl.lit(names).alias("metric")).explode("metric")
    more = {"kind": pl.lit("gauge"), "value": pl.lit(0.5), "window_start": NOW - 1_000, "window_end": NOW}
    return pl.concat([agents, recorded.with_columns(**more)], how="vertical_relaxed")


def test_there_are_such_commands() -> None:
    assert len(COMMANDS) >= 6
    assert any("--above 95%" in command for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_rule_does_what_it_says(command: str, healthy: pl.DataFrame) -> None:
    rule, percentages = read(command)
    demo = [metric.name for some in METRICS.values() for metric in some]
    known = pl.Series(sorted({*healthy["metric"], *demo}))
    assert matches(rule.metric, known).any(), f"no metric of the agent or of the demo is called {rule.metric}"
    seen = healthy.filter(pl.Series(matches(rule.metric, healthy["metric"])))
    for option in percentages:
        refuse_percentage_of_no_ratio(option, seen)
    if rule.report:
        assert seen.height, f"our own agent has no {rule.metric}"
        found = outlook(rule, seen)
        assert found["concerned"].sum() == 0, f"it reports a healthy machine: {found}"
