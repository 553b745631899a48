"""``newnormal play``: recorded series to Kafka, after a look at what the pipeline will make of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from datagen.aftermath import Aftermath
from datagen.outage import Tell
from datagen.player import Programme, load, programme, send
from datagen.prospects import Prospects, prospects
from datagen.wall_clock import WallClock
from engine.explain.printing import visible_lines
from engine.kafka.topic_watermarks import watermarks
from pipelines.cli.csv_options import How, reads_files
from pipelines.cli.input_commands import To, found, progress_bar, saying, sink_of, speed_of, stopping
from pipelines.cli.options import Kafka, Namespace, StateDir, overrides
from pipelines.contracts import settings as tree
from pipelines.contracts import topics

_ELSEWHERE = (
    "--namespace NAME.: a pipeline of their own, `newnormal run --namespace NAME.`",
    "--anyway: send them as they are",
)


@reads_files
def play(
    files: Annotated[
        list[Path], typer.Argument(help="CSV files, or folders of them: a column of times, others of values.")
    ],
    *,
    how: How,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
    to: To = None,
    speed: Annotated[str, typer.Option(help="Event time a real time; 0 or max: as fast as possible.")] = "max",
    shift_to_now: Annotated[
        bool, typer.Option("--shift-to-now", help="Move the series to the present. Default: event times as recorded.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Send them even if the pipeline can judge none of them.")
    ] = False,
) -> None:
    """Play recorded series, such as NAB's, to the topic telemetry.json.

    A file is a machine, named as the file, unless a column names machines; a column is a metric (kind gauge), named as
    the column. What cannot be used is skipped, counted and reported. While Kafka does not answer, the playing waits:
    nothing is dropped.

    A pipeline that has seen later times takes older ones for too late. So it is asked first how far it has come, and
    what will become of the series is told, and what can be done: --shift-to-now, or another --namespace. What was
    dropped is told at the end. If nothing could be judged, nothing is sent, unless --anyway.

    For example:

      newnormal play nab/data/realKnownCause/*.csv

      newnormal play recorded.csv --shift-to-now --speed 60
    """
    say = Console(stderr=True, highlight=False)
    tell = saying(say)
    pace = speed_of(speed)
    settings = tree.load(**overrides(kafka, None, state_dir, namespace))
    frame, reports = load(files, how.reading)
    for report in reports:
        say.print(visible_lines(str(report)), markup=False, soft_wrap=True)
    now = WallClock().now()
    what = programme(frame, pace, shift_to_now, now)
    settings = settings if to else found(settings)
    with (
        stopping() as stop,
        progress_bar(say, 1000) as bar,
        sink_of(settings, to, stop=stop, say=tell) as sink,
    ):
        if to or not frame.height:
            sent = send(what, sink, stop=stop)
            say.print(f"{sent} samples sent")
            return
        future = _announced(what, programme(frame, pace, True, now), settings, tell, anyway)
        with Aftermath(settings, what.frame) as aftermath:
            sent = send(what, sink, stop=stop, progress=lambda sent, total: bar(sent, sent * 1000 // max(total, 1)))
            say.print(f"{sent} samples sent")
            counts = aftermath.wait(sent, future.late, stop)
        say.print(counts.text(sent, settings), markup=False, soft_wrap=True)


def _announced(what: Programme, moved: Programme, settings: tree.Settings, tell: Tell, anyway: bool) -> Prospects:
    """Tells what the pipeline will make of the samples before they are sent, and what can be done about it.

    Args:
        what: The samples that are to be sent.
        moved: The same samples, moved to the present.
        settings: With the address of the broker, which is asked how far the pipeline has come.
        tell: Is given each sentence.
        anyway: Accepts that not one of them will be judged.

    Raises:
        NewnormalError: ``NOTHING_TO_JUDGE``, unless ``anyway``.
    """
    at = watermarks(settings.kafka.bootstrap or "", settings.topic(topics.TELEMETRY))
    future = prospects(what, at, settings)
    advice = [*_moving(future, moved, at, settings), *_ELSEWHERE]
    for line in future.lines(settings):
        tell(line)
    if not future.judged and not anyway:
        raise future.refusal(settings, advice)
    if future.judged < future.samples:
        tell(f"instead: {'; '.join(advice)}")
    return future


def _moving(future: Prospects, moved: Programme, at: Mapping[int, int], settings: tree.Settings) -> list[str]:
    """What --shift-to-now would bring, if that is more."""
    judged = prospects(moved, at, settings).judged
    return [f"--shift-to-now: {judged:,} of them would be judged"] if judged > future.judged else []
