"""Tries messages without Kafka: what would become of each, by the checks of the job that would read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.runtime import reading
from engine.spec.decoder import ROW, Messages
from engine.spec.source import Source
from engine.spec.time_bounds import TimeBounds
from pipelines.contracts.records import Log
from pipelines.formats.bounded import BoundedDecoder
from pipelines.formats.catalogue import FORMATS, Format, guess
from pipelines.formats.influx_lines import is_json
from pipelines.formats.refusals import FORMAT_UNKNOWN
from pipelines.formats.rules import Rules


@dataclass
class Fate:
    """What becomes of one message.

    Attributes:
        format: Name of its format; empty if none was recognised.
        samples: The samples that it holds, by the names of the columns.
        lines: The log lines that it holds.
        refused: Code and reason for the message, or for the part of it that cannot be used.
    """

    format: str
    samples: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def messages_in(content: bytes, form: Format | None, rules: Rules) -> list[bytes]:
    """The messages in a file: its lines, or the whole file where its format, or JSON over several lines, says so.

    Args:
        content: The file.
        form: Its format if it is known.
        rules: How labels and fields are read.
    """
    recognised = form or guess(content, rules=rules)
    stripped = content.strip()
    if recognised is not None and not recognised.a_line:
        return [content]
    first = stripped.split(b"\n", 1)[0].strip()
    if stripped[:1] in b"{[" and not is_json(first) and is_json(stripped):
        return [stripped]
    return [line for line in (each.strip(b"\r") for each in content.split(b"\n")) if line.strip()]


def fates(
    values: Sequence[bytes], form: Format | None, rules: Rules, bounds: TimeBounds, arrived: int
) -> Iterator[Fate]:
    """What becomes of each message.

    Args:
        values: The messages.
        form: Their format; ``None``: each is recognised by its content.
        rules: How labels and fields are read.
        bounds: Which times are accepted.
        arrived: When the messages arrive, epoch milliseconds.
    """
    forms = [form or guess(value, rules=rules) for value in values]
    all_fates = [Fate(each.name if each else "") for each in forms]
    for each in {each.name: each for each in forms if each}.values():
        mine = [at for at, other in enumerate(forms) if other is not None and other.name == each.name]
        _decode(each, [values[at] for at in mine], [all_fates[at] for at in mine], rules, bounds, arrived)
    unknown = f"looks like none of {', '.join(each.name for each in FORMATS)}; --format names one of them"
    for fate in all_fates:
        if not fate.format:
            fate.refused.append((FORMAT_UNKNOWN, unknown))
    yield from all_fates


def _decode(
    form: Format, values: list[bytes], fates_of_format: list[Fate], rules: Rules, bounds: TimeBounds, arrived: int
) -> None:
    record, messages = form.record, Messages.of(values, arrived)
    decoder = BoundedDecoder(form.build(rules), record, rules.most)
    decoded = decoder.decode(messages)
    good, parts = reading.checked(Source({"": decoder}, record, bounds=bounds), decoded.records, messages)
    for row in good.to_pylist():
        fate = fates_of_format[row.pop(ROW)]
        (fate.lines if record is Log else fate.samples).append(row)
    for row, code, why in decoded.refused:
        fates_of_format[row].refused.append((code, why))
    for at, code, why, held, which in parts:
        fates_of_format[at].refused.append((code, why if len(which) == held else f"{len(which)} of {held}: {why}"))
