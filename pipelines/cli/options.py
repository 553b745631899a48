"""Options that several commands share, and the settings that they override."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.hints import remember
from pipelines.cli.option_set import option_set

Overrides = dict[str, object]
"""Settings that options give, by dotted name; ``None`` gives nothing."""

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

ShownVersion = Annotated[
    str | None, typer.Option("--as", help="Version of the chain. Default: the one that readers see.")
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


def _servers(
    *, kafka: Kafka = None, elasticsearch: Elasticsearch = None, namespace: Namespace = None, state_dir: StateDir = None
) -> Overrides:
    return _kafka(kafka=kafka, namespace=namespace, state_dir=state_dir) | {"elasticsearch.url": elasticsearch}


def _kafka(*, kafka: Kafka = None, namespace: Namespace = None, state_dir: StateDir = None) -> Overrides:
    return _namespace(namespace=namespace, state_dir=state_dir) | {"kafka.bootstrap": kafka}


def _namespace(*, namespace: Namespace = None, state_dir: StateDir = None) -> Overrides:
    return {"namespace": namespace, "state_dir": state_dir}


with_servers = option_set("overrides", _servers)
"""A decorator: gives a command the options of both servers, the namespace and the state directory. The command gets
them as its argument ``overrides``, for `pipelines.contracts.settings.load`."""

with_kafka = option_set("overrides", _kafka)
"""The same for commands that need no Elasticsearch."""

with_namespace = option_set("overrides", _namespace)
"""The same for commands that need no server."""


def is_file(text: str) -> bool:
    """True if an argument of `newnormal run` names a file of jobs, not a production job.

    >>> is_file("my_jobs.py"), is_file("my_jobs.py:words"), is_file("extractor")
    (True, True, False)
    """
    return text.partition(":")[0].endswith(".py") or "/" in text
