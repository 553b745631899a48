"""The live table in a terminal: how the jobs are doing and what is novel. Plain lines where there is no terminal.

Fed by the pipeline's driver with `PipelineStatus`; asks no server anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dashboards.status import JobStatus, PipelineStatus
from engine.time import iso
from pipelines.records.novelty import JOINED

_STYLES = {
    "anomaly": "bold red",
    "state_change": "yellow",
    "new_normal": "cyan",
    "absence": "magenta",
    "recovered": "green",
}
_LINE_EVERY_S = 10.0


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
        self._last_line, self._told = float("-inf"), dict[str, None]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def update(self, status: PipelineStatus) -> None:
        """Shows this status now."""
        if not self._console.is_terminal:
            self._lines(status)
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        self._live.update(render(status, self._url, int(self._clock() * 1000)), refresh=True)

    def close(self) -> None:
        """Leaves the last state on the screen and gives the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _lines(self, status: PipelineStatus) -> None:
        """A line for each novelty not told yet, oldest first, and one for the jobs every ten seconds."""
        for novelty in reversed(status.novelties):
            key = "|".join(str(novelty.get(name)) for name in ("host.name", "metric", "@timestamp", "revision"))
            if key not in self._told:
                self._told[key] = None
                self._print(_novelty_line(novelty))
        while len(self._told) > 10_000:
            del self._told[next(iter(self._told))]
        now = self._clock()
        if now - self._last_line >= _LINE_EVERY_S:
            self._last_line = now
            self._print(_jobs_line(status))

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def render(status: PipelineStatus, url: str, now: int) -> RenderableType:
    """The tables of one moment."""
    title = Text.assemble(("Newnormal", "bold"), f"  running {duration(now - status.started)}")
    if status.latency_ms is not None:
        title.append(f"  latency {duration(round(status.latency_ms))}")
    title.append(f"  {status.indexed:,} documents")
    if url:
        title.append(f"  {url}", style="underline")
    troubles = [Text(printable(problem), "bold red") for problem in status.problems]
    parts = (_jobs(status.jobs, now), *troubles, Text(), _novelties(status, now))
    return Panel(Group(*parts), title=title, title_align="left")


def _jobs(jobs: tuple[JobStatus, ...], now: int) -> Table:
    table = Table(box=None, expand=True, header_style="dim")
    table.add_column("job")
    for name in ("in/s", "in", "out", "lag", "watermark", "delay", "keys", "state", "batch", "late", "dead"):
        table.add_column(name, justify="right", no_wrap=True)
    for job in jobs:
        mark = job.watermark
        table.add_row(
            Text(job.name, "bold"),
            f"{job.rate_in:,.0f}",
            f"{job.records_in:,}",
            f"{job.records_out:,}",
            "–" if job.lag is None else f"{job.lag:,}",
            "–" if mark is None else clock_time(mark, now),
            "–" if mark is None else duration(now - mark),
            f"{job.keys:,}" if job.keys else "–",
            size(job.state_bytes) if job.state_bytes else "–",
            duration(round(job.batch_ms)),
            Text(f"{job.late:,}", "yellow" if job.late else "dim"),
            Text(f"{job.dead_lettered:,}", "bold red" if job.dead_lettered else "dim"),
        )
    return table


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
        metric = "all metrics" if it.get("metric") == JOINED else str(it.get("metric"))
        style = _STYLES.get(kind, "dim")
        table.add_row(  # Text, not str: a name that looks like markup is shown as it is
            clock_time(int(it["@timestamp"]), now),
            Text(printable(str(it.get("host.name")))),
            Text(printable(metric)),
            Text(kind.replace("_", " "), style),
            Text(f"{float(it.get('record_score', 0)):.0f}", style),
            number(it.get("typical")),
            number(it.get("actual")),
        )
    return table


def _novelty_line(it: dict[str, Any]) -> str:
    what = f"{it.get('host.name')} {it.get('metric')}"
    values = f"typical {number(it.get('typical'))}, actual {number(it.get('actual'))}"
    score = float(it.get("record_score", 0))
    return printable(f"{iso(int(it['@timestamp']))} {it.get('kind')} {what} score {score:.0f}, {values}")


def _jobs_line(status: PipelineStatus) -> str:
    parts = [f"{job.name} {job.rate_in:,.0f}/s lag {'–' if job.lag is None else job.lag}" for job in status.jobs]
    late, dead = sum(job.late for job in status.jobs), sum(job.dead_lettered for job in status.jobs)
    latency = "–" if status.latency_ms is None else duration(round(status.latency_ms))
    return "; ".join(
        [*parts, f"late {late}", f"dead letters {dead}", f"latency {latency}", f"indexed {status.indexed}"]
    )


def printable(text: str) -> str:
    r"""Text without control characters: a machine's name must not steer the terminal.

    >>> printable("a\x1b[2Jb\n")
    'a?[2Jb?'
    """
    return "".join(char if char.isprintable() else "?" for char in text)


def clock_time(ms: int, now: int) -> str:
    """An instant, UTC: the time of day, with its date where it is not of the last or next twelve hours.

    >>> clock_time(0, 1_000), clock_time(0, 86_400_000)
    ('00:00:00', '1970-01-01 00:00:00')
    """
    text = iso(ms)[:19].replace("T", " ")
    return text[11:] if abs(now - ms) < 43_200_000 else text


def duration(ms: int) -> str:
    """A duration, short.

    >>> duration(90), duration(2_500), duration(600_000), duration(10_800_000)
    ('90 ms', '2.5 s', '10 min', '3.0 h')
    """
    if abs(ms) < 1_000:
        return f"{ms} ms"
    if abs(ms) < 120_000:
        return f"{ms / 1_000:.1f} s"
    if abs(ms) < 7_200_000:
        return f"{ms / 60_000:.0f} min"
    return f"{ms / 3_600_000:.1f} h" if abs(ms) < 172_800_000 else f"{ms / 86_400_000:,.0f} d"


def size(value: float) -> str:
    """Bytes, short.

    >>> size(48_200_000)
    '48.2 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1_000:
            return f"{value:.3g} {unit}"
        value /= 1_000
    return f"{value:.3g} TB"


def number(value: float | None) -> str:
    """Four significant digits.

    >>> number(0.0042), number(None)
    ('0.0042', '–')
    """
    return "–" if value is None else f"{value:,.4g}"
