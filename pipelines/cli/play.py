"""``newnormal play``: sends recorded series to Kafka, after checking how many of the samples will be too late."""

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
from engine.clock import now_ms
from engine.kafka.topic_watermarks import watermarks
from engine.printing import visible_lines
from pipelines.cli.csv_options import ReadingOptions, reads_files
from pipelines.cli.input_commands import To, progress_bar, saying, sink_of, speed_of, stopping, with_broker
from pipelines.cli.options import Overrides, with_kafka
from pipelines.contracts import settings as tree
from pipelines.contracts import topics

_ELSEWHERE = (
    "--namespace NAME.: play them to a pipeline of their own (`newnormal run --namespace NAME.`)",
    "--anyway: send them as they are",
)


@reads_files
@with_kafka
def play(
    overrides: Overrides,
    how: ReadingOptions,
    files: Annotated[
        list[Path], typer.Argument(help="CSV files, or folders of them, with a column of times and columns of values.")
    ],
    to: To = None,
    speed: Annotated[
        str, typer.Option(help="Seconds of event time per second; 0 or max: as fast as possible.")
    ] = "max",
    shift_to_now: Annotated[
        bool, typer.Option("--shift-to-now", help="Shift the event times to the present. Default: as recorded.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Send the samples even if all of them are too late for the pipeline.")
    ] = False,
) -> None:
    """Play recorded series, such as NAB's, to the topic telemetry.json.

    Each file is a machine with the file's name, unless a column names machines; each column of values is a metric of
    kind gauge with the column's name. Lines that cannot be used are skipped, counted and reported. While Kafka does not
    answer, the command waits and drops nothing.

    A pipeline rejects samples that are much older than those it has already seen: they are too late. So the command
    first asks how far the pipeline has come, and says how many samples will be judged and how to have more of them
    judged: --shift-to-now, or another --namespace. If all samples are too late, none is sent, unless --anyway is given.
    At the end the command says how many samples were dropped.

    For example:

      newnormal play nab/data/realKnownCause/*.csv

      newnormal play recorded.csv --shift-to-now --speed 60
    """
    say = Console(stderr=True, highlight=False)
    tell = saying(say)
    pace = speed_of(speed)
    settings = tree.load(**overrides)
    frame, reports = load(files, how.reading)
    for report in reports:
        say.print(visible_lines(str(report)), markup=False, soft_wrap=True)
    now = now_ms()
    samples = programme(frame, pace, shift_to_now, now)
    settings = settings if to else with_broker(settings)
    with (
        stopping() as stop,
        progress_bar(say, 1000) as bar,
        sink_of(settings, to, stop=stop, say=tell) as sink,
    ):
        if to or not frame.height:
            sent = send(samples, sink, stop=stop)
            say.print(f"{sent} samples sent")
            return
        future = _announced(samples, programme(frame, pace, True, now), settings, tell, anyway)
        with Aftermath(settings, samples.frame) as aftermath:
            sent = send(samples, sink, stop=stop, progress=lambda sent, total: bar(sent, sent * 1000 // max(total, 1)))
            say.print(f"{sent} samples sent")
            counts = aftermath.wait(sent, future.late, stop)
        say.print(counts.text(sent, settings), markup=False, soft_wrap=True)


def _announced(programme: Programme, moved: Programme, settings: tree.Settings, tell: Tell, anyway: bool) -> Prospects:
    """Says how many samples the pipeline will judge, before they are sent, and how to have more of them judged.

    Args:
        programme: The samples that are to be sent.
        moved: The same samples, shifted to the present.
        settings: The settings, with the address of the broker, whose watermarks are read.
        tell: Is called with each sentence.
        anyway: True if the samples are sent even if none will be judged.

    Raises:
        NewnormalError: ``NOTHING_TO_JUDGE`` if none will be judged and ``anyway`` is false.
    """
    at = watermarks(settings.kafka.bootstrap or "", settings.topic(topics.TELEMETRY))
    future = prospects(programme, at, settings)
    advice = [*_moving(future, moved, at, settings), *_ELSEWHERE]
    for line in future.lines(settings):
        tell(line)
    if not future.to_be_judged and not anyway:
        raise future.refusal(settings, advice)
    if future.to_be_judged < future.samples:
        tell(f"instead: {'; '.join(advice)}")
    return future


def _moving(future: Prospects, moved: Programme, at: Mapping[int, int], settings: tree.Settings) -> list[str]:
    """A sentence saying how many samples would be judged with --shift-to-now; none if that is not more."""
    judged = prospects(moved, at, settings).to_be_judged
    return [f"--shift-to-now: {judged:,} samples would be judged"] if judged > future.to_be_judged else []
