"""Shared by the commands that write input: where they write, how they are stopped, and how they show progress."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from datagen.buffered import buffered
from datagen.kafka_writer import KafkaWriter
from datagen.outage import Tell
from datagen.sinks import FileSink, KafkaSink, RecordSink, make_topics
from deploy.embedded import state_file
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings

To = Annotated[Path | None, typer.Option(help="Write JSON lines to files in this folder instead of Kafka.")]


def speed_of(text: str) -> float:
    """Reads the option `--speed`: seconds of event time per second of real time; 0 means as fast as possible.

    Raises:
        NewnormalError: ``SPEED_INVALID`` if the text is neither a number from 0 up nor ``max``.
    """
    try:
        speed = 0.0 if text.strip().lower() == "max" else float(text)
        if 0 <= speed < float("inf"):
            return speed
    except ValueError:
        pass
    raise NewnormalError(
        "SPEED_INVALID", repr(text), "--speed", "a number such as 1 or 60; 0 or max: as fast as possible"
    )


def bootstrap(settings: Settings) -> str:
    """The address of the broker in the settings, else of the embedded one that runs; the broker is not contacted.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE`` if there is neither.
    """
    if settings.kafka.bootstrap:
        return settings.kafka.bootstrap
    running = state_file.read(settings.state)
    if running and running.endpoints.bootstrap:
        return running.endpoints.bootstrap
    raise NewnormalError(
        "KAFKA_UNREACHABLE",
        "no broker is named, and no embedded one is running",
        str(settings.state),
        "--kafka host:port, the setting kafka.bootstrap, or `newnormal services up`",
        "nothing was sent",
    )


def with_broker(settings: Settings) -> Settings:
    """The settings, with `kafka.bootstrap` set to the address that `bootstrap` finds."""
    kafka = settings.kafka.model_copy(update={"bootstrap": bootstrap(settings)})
    return settings.model_copy(update={"kafka": kafka})


@contextmanager
def sink_of(
    settings: Settings, to: Path | None, truth: Path | None = None, *, stop: threading.Event, say: Tell
) -> Iterator[RecordSink]:
    """A sink for a source that can wait: files, or Kafka, whose topics are created.

    Args:
        settings: The settings; they hold the broker's address, unless ``to`` is given.
        to: Folder of the files; ``None``: Kafka.
        truth: A file to which the ground truth is written as well.
        stop: When set, the sink no longer waits for Kafka.
        say: Is called with a sentence at the beginning and end of an outage.
    """
    with ExitStack() as stack:
        if to:
            yield stack.enter_context(FileSink(to))
            return
        address = settings.kafka.bootstrap or ""
        make_topics(settings, address)
        writer = stack.enter_context(KafkaWriter(address, stop, say))
        yield KafkaSink(writer, settings.namespace, _opened(stack, truth))


@contextmanager
def agents_sink(settings: Settings, to: Path | None, name: str, say: Tell) -> Iterator[RecordSink]:
    """A sink for a source that cannot wait: files, or Kafka with a buffer on disk.

    Args:
        settings: The settings of the broker and the buffer.
        to: Folder of the files; ``None``: Kafka.
        name: Name of the machine, which names the buffer.
        say: Is called with a sentence at the beginning and end of an outage.
    """
    if to:
        with FileSink(to) as files:
            yield files
        return
    with buffered(settings, name, lambda: bootstrap(settings), say) as writer:
        yield KafkaSink(writer, settings.namespace)


def _opened(stack: ExitStack, path: Path | None) -> TextIO | None:
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return stack.enter_context(path.open("w", encoding="utf-8"))
    except OSError as error:
        raise NewnormalError("OUTPUT_NOT_WRITABLE", str(error), str(path), "a file that can be written") from None


def saying(console: Console) -> Tell:
    """A function that prints sentences above the progress bar."""
    return lambda text: console.print(text, style="yellow", markup=False, soft_wrap=True)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that is set by Ctrl-C or SIGTERM; a second such signal ends the process at once."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class ProgressDisplay:
    """Shows the number of records and their rate; and the share that is done, if the total is known."""

    def __init__(self, progress: Progress, total: int | None) -> None:
        self._progress, self._began = progress, time.monotonic()
        self._task = progress.add_task("", total=total)

    def __call__(self, records: int, done: int) -> None:
        rate = records / max(time.monotonic() - self._began, 0.001)
        self._progress.update(self._task, completed=done, description=f"{records:,} samples, {rate:,.0f}/s")


@contextmanager
def progress_bar(console: Console, total: int | None) -> Iterator[ProgressDisplay]:
    """A progress bar on a terminal; without a terminal it shows nothing.

    Args:
        console: Where it is shown.
        total: The amount of work, in any unit; ``None`` if it is not known.
    """
    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    columns += [TextColumn("left:"), TimeRemainingColumn()] if total else []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield ProgressDisplay(progress, total)
