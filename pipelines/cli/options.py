"""Options that several commands share, and the settings that they override."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.hints import remember

Kafka = Annotated[str | None, typer.Option("--kafka", help="host:port of a Kafka broker. Default: the embedded one.")]
Elasticsearch = Annotated[
    str | None, typer.Option("--elasticsearch", help="http://host:port of an Elasticsearch. Default: the embedded one.")
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir", callback=remember, help="Folder of data, checkpoints and logs. Default: the setting state_dir."
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", help="Prefix of all topics and indices, ends in a dot; it keeps pipelines apart. Default: none."
    ),
]

As = Annotated[
    str, typer.Option("--as", help="Version of the chain, e.g. v2; [bold]newnormal versions[/bold] lists them.")
]

AsJson = Annotated[
    bool, typer.Option("--json", help="Write one JSON object per line, with the names of docs/records.md.")
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

File = Annotated[
    str | None, typer.Option("--file", help="File of your own jobs, if these are meant; as for `newnormal run`.")
]


def ask(question: str, yes: bool) -> None:
    """Asks whether to go on, unless ``--yes`` was given; anything but yes ends the command.

    Raises:
        typer.Abort: If the answer is not yes.
    """
    if not yes:
        typer.confirm(question, abort=True)


def overrides(
    kafka: str | None, elasticsearch: str | None, state_dir: Path | None, namespace: str | None
) -> dict[str, object]:
    """The shared options as overrides of settings, by dotted name; ``None`` overrides nothing."""
    return {
        "kafka.bootstrap": kafka,
        "elasticsearch.url": elasticsearch,
        "state_dir": state_dir,
        "namespace": namespace,
    }


def is_file(text: str) -> bool:
    """True if an argument of `newnormal run` names a file of jobs, not a production job.

    >>> is_file("my_jobs.py"), is_file("my_jobs.py:words"), is_file("extractor")
    (True, True, False)
    """
    return text.partition(":")[0].endswith(".py") or "/" in text
