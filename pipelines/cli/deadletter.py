"""`newnormal deadletter`: shows what jobs could not use and why, and sends it again once the cause is mended."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.cli.option_set import option_set
from pipelines.cli.options import As, AsJson, File, Overrides, with_kafka
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import FIRST

if TYPE_CHECKING:
    from pipelines.query.dead_letters.letters import Letter, LetterFilter
    from pipelines.versions.version import Version

app = typer.Typer(
    help="Show the messages that jobs could not use, and send them again once the cause is mended.",
    no_args_is_help=True,
)

Jobs = Annotated[list[str] | None, typer.Option("--job", help="Only letters of this job; repeatable.")]
Codes = Annotated[list[str] | None, typer.Option("--code", help="Only letters with this code; repeatable.")]
Start = Annotated[
    str | None, typer.Option("--from", help="Only messages that arrived at this time or later: ISO 8601, or -2h.")
]
End = Annotated[str | None, typer.Option("--until", help="Only messages that arrived before: ISO 8601, or -1h.")]
_SHOWN = 20


class Opened(NamedTuple):
    """The settings of a version with the address of Kafka filled in, and all versions."""

    settings: Settings
    versions: list[Version]


def _opened(overrides: Overrides, version: str) -> Opened:
    from deploy.embedded.services import running
    from pipelines.versions.registry import Registry

    settings = running(load(**overrides), elasticsearch=False)
    registry = Registry(settings)
    chosen = registry.get(version).load(**overrides | {"kafka.bootstrap": settings.kafka.bootstrap})
    return Opened(chosen, list(registry.all().values()))


@with_kafka
def _options(overrides: Overrides, version: As = FIRST) -> Opened:
    return _opened(overrides, version)


_of_version = option_set("opened", _options)


@app.command("list")
@_of_version
def list_(
    opened: Opened,
    job: Jobs = None,
    code: Codes = None,
    start: Start = None,
    end: End = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object per letter.")] = False,
) -> None:
    """Count the letters by job and code, with the time of the first and last, and an example.

    Letters of your own jobs (topics JOB.deadletter) are among them.
    """
    from pipelines.query.dead_letters.letters import letters, summary

    settings = opened.settings
    chosen = _filter(job, code, start, end).of(letters(settings))
    if as_json:
        for letter in chosen:
            typer.echo(rows.line(_fields(letter)))
        return
    if not chosen:
        typer.echo("no dead letters")
        return
    table = summary(chosen)
    numbers = {name: isinstance(value, int) and name not in ("first", "last") for name, value in table[0].items()}
    shown = [[iso(row[name]) if name in ("first", "last") else row[name] for name in numbers] for row in table]
    rows.show(numbers, shown)
    typer.echo(
        hint("`newnormal deadletter show EXAMPLE` shows a letter whole; `newnormal deadletter retry` sends it again")
    )


@app.command()
@_of_version
def show(
    opened: Opened,
    place: Annotated[str, typer.Argument(help="Place of the message: TOPIC/PARTITION@OFFSET, as list shows it.")],
    as_json: AsJson = False,
) -> None:
    """Show the letters about a message whole, and the message itself if its topic still holds it."""
    from pipelines.query.dead_letters.letters import LetterFilter, letters
    from pipelines.query.dead_letters.originals import Originals

    settings = opened.settings
    about = LetterFilter(places=(place,)).of(letters(settings))
    if not about:
        raise _unknown(f"there is no dead letter about {place}")
    letter = about[0].letter
    with Originals(settings.kafka.bootstrap or "") as originals:
        original = originals.read(letter.topic, letter.partition, letter.offset)
    value = None if original is None else original.value() or b""
    for one in about:
        if as_json:
            text = {} if value is None else {"message": value.decode("utf-8", "backslashreplace")}
            typer.echo(rows.line(_fields(one) | text))
        else:
            rows.block(place, {name: str(rows.readable(name, held)) for name, held in _fields(one).items()})
    if as_json:
        return
    if value is None:
        typer.echo("the message is no longer in its topic: its retention time has passed, or it was deleted")
    else:
        typer.echo(f"the message, {len(value):,} bytes:")
        typer.echo(visible(value.decode("utf-8", "backslashreplace")))


@app.command()
@with_kafka
def retry(
    overrides: Overrides,
    places: Annotated[list[str] | None, typer.Argument(help="Places of messages: TOPIC/PARTITION@OFFSET.")] = None,
    job: Jobs = None,
    code: Codes = None,
    start: Start = None,
    end: End = None,
    everything: Annotated[bool, typer.Option("--all", help="All letters that were not sent again yet.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Send also what was sent before, would be refused again, or was used by another job; records may then "
            "count twice.",
        ),
    ] = False,
    file: File = None,
    version: As = FIRST,
) -> None:
    """Send the messages of letters again, once the cause is mended, and mark the letters.

    Of a message of which only some records were refused, only these are sent. What was sent before is not sent again.
    Exit code 1 if some messages could not be sent.

    Example: [bold]newnormal deadletter retry --job normalizer --code TIME_AHEAD --from -1h[/bold]
    """
    from pipelines.query.dead_letters.letters import letters
    from pipelines.query.dead_letters.readers import Readers
    from pipelines.query.dead_letters.retry import Retry
    from pipelines.runtime.own_jobs import load_jobs

    if not (places or job or code or start or end or everything):
        accepted = "places of messages, --job, --code, --from, --until, or --all"
        raise NewnormalError("USAGE_INVALID", "no letter is selected", "deadletter retry", accepted, "nothing was sent")
    settings, versions = _opened(overrides, version)
    choice = _filter(job, code, start, end, places)
    readers = Readers(settings, versions, load_jobs([file]) if file else None)

    def read() -> list[Letter]:
        selected = choice.of(letters(settings))
        if not selected:
            raise _unknown("no dead letter is selected")
        return selected if places or force else [letter for letter in selected if letter.mark is None]

    done = Retry(settings, readers.source, readers.others, force=force).run(read, now_ms())
    typer.echo(f"{len(done.sent):,} letters sent again")
    for letter, again in done.sent[:_SHOWN]:
        typer.echo(visible(f"  {letter.place} as {again}"))
    for (error_code, what, accepted), number in _reasons([error for _, error in done.refused]).items():
        typer.echo(visible(f"{number:,} not sent, {error_code}: {what}; accepted: {accepted}"), err=True)
    if done.refused:
        raise typer.Exit(1)


def _filter(
    job: list[str] | None,
    code: list[str] | None,
    start: str | None,
    end: str | None,
    places: list[str] | None = None,
) -> LetterFilter:
    from pipelines.query.control_topics import instant
    from pipelines.query.dead_letters.letters import LetterFilter

    now = now_ms()
    bounds = instant(start, now, "--from"), instant(end, now, "--until")
    return LetterFilter(tuple(job or ()), tuple(code or ()), tuple(places or ()), *bounds)


def _fields(letter: Letter) -> dict[str, object]:
    mark = letter.mark and {"retried": letter.mark.retried, "retried_as": letter.mark.retried_as}
    return letter.letter.model_dump(mode="json", exclude_none=True) | (mark or {})


def _reasons(errors: list[NewnormalError]) -> Counter[tuple[str, str, str]]:
    return Counter((error.code, error.what, error.accepted) for error in errors)


def _unknown(why: str) -> NewnormalError:
    return NewnormalError("LETTER_UNKNOWN", why, "deadletter", "letters that `newnormal deadletter list` shows")
