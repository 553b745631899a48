"""`newnormal query`: asks the state view what the detector believes, and shows the answers as tables."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from engine.printing import visible
from engine.spec.duration import iso
from pipelines.cli.option_set import option_set
from pipelines.cli.options import StateDir
from pipelines.contracts.settings import load
from pipelines.query.view.client import MOST, ViewClient

app = typer.Typer(help="Ask the state view what the detector believes; see docs/state-view.md.", no_args_is_help=True)

Url = Annotated[
    list[str] | None, typer.Option("--view", help="URL of the view, once for each part. Default: view.host, view.port.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write the answer as JSON.")]


def _client(*, view: Url = None, state_dir: StateDir = None) -> ViewClient:
    return ViewClient.of(load(state_dir=state_dir).view, view)


_asks_the_view = option_set("client", _client)

_FULL = ("full_earliest", "full_median", "full_latest")
_INSTANTS = ("@timestamp", "window_start", "window_end", "since", *_FULL)
_STATE = ("host.name", "metric", "kind", "record_score", "typical", "incident.state", "since")
_WINDOW = ("window_end", "mean", "kind", "record_score", "lower", "typical", "upper")


@app.command()
@_asks_the_view
def state(client: ViewClient, entity: str, metric: str, as_json: AsJson = False) -> None:
    """Show what is believed of one series."""
    answer = client.one("/state", entity=entity, metric=metric)
    found = answer["state"]
    _show(answer, as_json, ["", ""], [[name, _text(name, value)] for name, value in found.items()])


@app.command()
@_asks_the_view
def windows(
    client: ViewClient,
    entity: str,
    metric: str,
    n: Annotated[int, typer.Option("-n", min=1, max=MOST, help="How many windows.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the last windows of one series, with the verdicts known on them."""
    answer = client.one("/windows", entity=entity, metric=metric, n=n)
    _show(answer, as_json, _WINDOW, _rows(answer["windows"], _WINDOW))


@app.command()
@_asks_the_view
def top(
    client: ViewClient,
    k: Annotated[int, typer.Argument(min=1, max=MOST)] = 10,
    as_json: AsJson = False,
) -> None:
    """Show the most abnormal series now, the highest score first."""
    answer = client.every("/top", k=k)
    answer["states"] = sorted(answer["states"], key=lambda each: -each["record_score"])[:k]
    _show(answer, as_json, _STATE, _rows(answer["states"], _STATE))


@app.command()
@_asks_the_view
def full(
    client: ViewClient,
    k: Annotated[int, typer.Argument(min=1, max=MOST)] = 10,
    as_json: AsJson = False,
) -> None:
    """Show what will be full next: the earliest, median and latest time, with 95 % between (docs/time-to-full.md)."""
    answer = client.every("/full", k=k)
    answer["states"] = sorted(answer["states"], key=lambda each: each["full_median"])[:k]
    names = ("host.name", "metric", "actual", "full_rate", *_FULL)
    _show(answer, as_json, names, _rows(answer["states"], names))


@app.command()
@_asks_the_view
def states(
    client: ViewClient,
    prefix: Annotated[str, typer.Argument(help="Beginning of the machines' names; empty: all.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="How many at most.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the series of machines whose names begin with a text."""
    answer = client.every("/states", prefix=prefix, limit=limit)
    answer["states"] = sorted(answer["states"], key=lambda each: (each["host.name"], each["metric"]))[:limit]
    _show(answer, as_json, _STATE, _rows(answer["states"], _STATE))


@app.command()
@_asks_the_view
def counts(client: ViewClient, as_json: AsJson = False) -> None:
    """Show how many series there are, by kind of their last verdict."""
    answer = client.every("/counts")
    _show(answer, as_json, ["", ""], [[name, f"{number:,}"] for name, number in answer["counts"].items()])


def _show(answer: dict[str, Any], as_json: bool, headings: Any, rows: list[list[str]]) -> None:
    if as_json:
        typer.echo(orjson.dumps(answer).decode())
        return
    table = Table(show_header=any(headings))
    for heading in headings:
        table.add_column(heading, no_wrap=heading in _INSTANTS, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table, markup=False)
    console.print(_age(answer["age"]), markup=False, highlight=False)


def _rows(documents: list[dict[str, Any]], names: tuple[str, ...]) -> list[list[str]]:
    return [[_text(name, each.get(name)) for name in names] for each in documents]


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in _INSTANTS:
        return iso(value)
    if isinstance(value, list):
        return ", ".join(_text("", each) for each in value)
    return f"{value:.5g}" if isinstance(value, float) else visible(str(value)).replace("[", r"\[")


def _age(age: dict[str, Any]) -> str:
    known = f"up to {age['event_time']}" if "event_time" in age else "no window yet"
    behind = f"; {age['messages_behind']} messages behind" if age["messages_behind"] else ""
    again = f"; {age['restart']}" if "restart" in age else ""
    return f"version {age['version']}, {known}{behind}{again}"
