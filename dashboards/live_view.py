"""The live table in a terminal: how the jobs are doing, and the incidents. Without a terminal the news go to the log.

Fed by the pipeline's driver with `PipelineStatus`; asks no server anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import structlog
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dashboards.live_incidents import IncidentLines, incidents_table
from dashboards.status import JobStatus, PipelineStatus, Progress
from engine.printing import cell, visible
from engine.spec.duration import iso
from pipelines.contracts.quantities.cells import clock_time, latency, size, value
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.records.novelty import shown_metric

_STYLES = {
    "anomaly": "bold red",
    "state_change": "yellow",
    "new_normal": "cyan",
    "absence": "magenta",
    "exhaustion": "bright_yellow",
    "outlier": "bold yellow",
    "recovered": "green",
}
_LINE_EVERY_S = 10.0
_WIDE = 110
_COLUMNS = ("in/s", "in", "out", "lag", "watermark", "delay", "keys", "state", "batch", "late", "dead")
_NARROW = ("in/s", "lag", "watermark", "delay", "late", "dead")
log = structlog.get_logger()


class LiveView:
    """Shows a pipeline's status until closed; a context manager.

    Args:
        console_url: Where the web console is, for the title.
        console: The terminal; by default standard output.
        clock: Epoch seconds.
    """

    def __init__(
        self, console_url: str = "", console: Console | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._url, self._console, self._clock = console_url, console or Console(), clock
        self._live: Live | None = None
        self._last_line, self._logged, self._incidents = float("-inf"), dict[str, None](), IncidentLines()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, status: PipelineStatus, *, logged: bool = False) -> None:
        """Shows this status now.

        Args:
            status: Of the pipeline.
            logged: Whether its problems are in the log already, as those of a server that does not answer are.
        """
        if not self._console.is_terminal:
            self._lines(status, logged)
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        self._live.update(render(status, self._url, int(self._clock() * 1000), self._console.width), refresh=True)

    def close(self) -> None:
        """Leaves the last state on the screen and gives the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _lines(self, status: PipelineStatus, logged: bool) -> None:
        """Logs what is news, and every ten seconds what is not well, unless it was logged.

        News are the incidents, or where no job finds incidents each novelty that was stored since the start, the oldest
        first.
        """
        for incident in self._incidents.news(status.incidents or ()):
            log.info("incident", **incident)
        stored = [] if status.incidents is not None else status.novelties
        for novelty in reversed([each for each in stored if (each.get("event.ingested") or 0) >= status.started]):
            key = "|".join(str(novelty.get(name)) for name in ("host.name", "metric", "@timestamp", "revision"))
            if key not in self._logged:
                self._logged[key] = None
                log.info("novelty", **_fields(novelty))
        while len(self._logged) > 10_000:
            del self._logged[next(iter(self._logged))]
        now = self._clock()
        if now - self._last_line < _LINE_EVERY_S:
            return
        if status.progress:
            self._last_line = now
            log.info(replay_text(status.progress, int(now * 1000)))
        if status.problems and not logged:
            self._last_line = now
            for problem in status.problems:
                log.warning("not well", problem=visible(problem))


def render(status: PipelineStatus, url: str, now: int, width: int) -> RenderableType:
    """The tables of one moment."""
    title = Text.assemble(("Newnormal", "bold"), f"  running {duration(now - status.started)}")
    if status.latency_ms is not None:
        title.append(f"  {latency(round(status.latency_ms), status.waits_ms)}")
    title.append(f"  {status.indexed:,} documents stored")
    if url:
        title.append(cell(f"  {url}", "underline"))
    troubles = [cell(problem, "bold red") for problem in status.problems]
    replay = [_replay(status.progress, now, width)] if status.progress else []
    parts = (*replay, jobs_table(status.jobs, now, width), *troubles, Text(), _news(status, now, width))
    return Panel(Group(*parts), title=title, title_align="left")


def _replay(progress: Progress, now: int, width: int) -> RenderableType:
    """A bar that shows how far a replay has come, and the same in words."""
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(100, 100 * progress.share, width=min(30, width // 4)), cell(replay_text(progress, now)))
    return row


def replay_text(progress: Progress, now: int) -> str:
    """How far a replay has come, in words.

    >>> replay_text(Progress("v2", 1_000, 0.5, 80_000.0, 12.3), 2_000)
    'replay into v2: 50 %, event time 00:00:01, 80,000 records/s, 12.3 s left'
    >>> replay_text(Progress("v2", None, 0.0, 0.0, None), 2_000)
    'replay into v2: its first micro-batch is being computed; how far it has come is known when that is written'
    """
    if not progress.share and progress.at is None:
        first = "its first micro-batch is being computed; how far it has come is known when that is written"
        return f"replay into {progress.version}: {first}"
    at = "not known yet" if progress.at is None else clock_time(progress.at, now)
    left = "" if progress.seconds_left is None else f", {duration(round(progress.seconds_left * 1000))} left"
    what = f"replay into {progress.version}: {100 * progress.share:.0f} %"
    return f"{what}, event time {at}, {progress.rate:,.0f} records/s{left}"


def jobs_table(jobs: Sequence[JobStatus], now: int, width: int) -> Table:
    """A row for each job; in a narrow terminal what matters most.

    Args:
        jobs: The jobs.
        now: Epoch milliseconds.
        width: Columns of the terminal.
    """
    wide = width >= _WIDE
    table = Table(box=None, expand=wide, header_style="dim")
    table.add_column("job")
    names = _COLUMNS if wide else _NARROW
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for job in jobs:
        mark = job.watermark
        cells: dict[str, str | Text] = {
            "in/s": f"{job.rate_in:,.0f}",
            "in": f"{job.records_in:,}",
            "out": f"{job.records_out:,}",
            "lag": "unknown" if job.lag is None else f"{job.lag:,}",
            "watermark": "–" if mark is None else clock_time(mark, now),
            "delay": "–" if mark is None else duration(now - mark),
            "keys": f"{job.keys:,}" if job.keys else "–",
            "state": size(job.state_bytes) if job.state_bytes else "–",
            "batch": duration(round(job.batch_ms)),
            "late": Text(f"{job.late:,}", "yellow" if job.late else "dim"),
            "dead": Text(f"{job.dead_lettered:,}", "bold red" if job.dead_lettered else "dim"),
        }
        table.add_row(cell(job.name, "bold"), *(cells[name] for name in names))
    return table


def _news(status: PipelineStatus, now: int, width: int) -> RenderableType:
    return _novelties(status, now) if status.incidents is None else incidents_table(status.incidents, now, width)


def _novelties(status: PipelineStatus, now: int) -> RenderableType:
    if not status.novelties:
        return Text("nothing novel so far", "dim")
    table = Table(box=None, expand=True, header_style="dim")
    for name in ("time (UTC)", "machine", "metric", "kind"):
        table.add_column(name, no_wrap=True)
    for name in ("score", "typical", "actual"):
        table.add_column(name, justify="right", no_wrap=True)
    for it in status.novelties[:12]:
        kind = str(it.get("kind", ""))
        metric = shown_metric(str(it.get("metric")))
        style = _STYLES.get(kind, "dim")
        table.add_row(
            clock_time(int(it["@timestamp"]), now),
            cell(it.get("host.name")),
            cell(metric),
            cell(kind.replace("_", " "), style),
            Text(f"{float(it.get('record_score', 0)):.0f}", style),
            value(it, "typical"),
            value(it, "actual"),
        )
    return table


def _fields(it: dict[str, Any]) -> dict[str, Any]:
    """A novelty for the log: names that could steer a terminal are made visible."""
    fields = {
        "at": iso(int(it["@timestamp"])),
        "kind": visible(it.get("kind")),
        "score": round(float(it.get("record_score", 0)), 1),
    }
    names = {"machine": visible(it.get("host.name")), "metric": visible(it.get("metric"))}
    if it.get("message"):
        return fields | names | {"message": visible(it["message"])}
    return fields | names | {name: it[name] for name in ("actual", "typical") if it.get(name) is not None}
