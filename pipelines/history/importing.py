"""Imports history slice by slice, the newest first: what is there is complete, and is where the next start goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

import numpy as np
import pyarrow as pa

from engine.locks import try_lock
from engine.spec.duration import duration_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.history.intake import Intake, StoppedError, TooMuchError, too_large
from pipelines.history.place import Edge, imported
from pipelines.history.writing import HistoryWriter, clean, remove
from pipelines.jobs.archive.layout import DAY_MS, TopicFolder

MINUTE_MS = 60_000
_SHORTEST, _FIRST, _LONGEST = MINUTE_MS, 60 * MINUTE_MS, DAY_MS
"""Lengths of slices, milliseconds: the shortest, that of the first one, and the longest."""

_FEW_ROWS, _MANY_ROWS = 250_000, 1_000_000
"""The next slice is twice as long if one has fewer records, and half as long if it has more."""

MOST_ROWS = 2_000_000
"""Records of a slice at most: they are in memory at a time, with some 100 bytes each while they are read."""

_NOW = "nothing was imported"
Progress = Callable[[int, float], None]
"""Is called with the number of samples so far, and the share of the time that is done, 0 to 1."""


class HistorySource(ABC):
    """Where history comes from.

    Attributes:
        origin: What it is, for people, without secrets.
    """

    origin: str

    @abstractmethod
    def read(self, begin: int, end: int, intake: Intake) -> pa.Table:
        """All samples with an event time from ``begin`` until before ``end`` (epoch milliseconds).

        Raises:
            TooMuchError: If they are too many for the memory.
            NewnormalError: If the source cannot be read.
        """

    def series(self, begin: int, end: int) -> int | None:
        """How many series it has in a time, if it tells without reading all samples."""
        return None


@dataclass
class Imported:
    """What an import did.

    Attributes:
        begin: First event time that is there now, epoch milliseconds.
        end: The event time behind the last one.
        complete: False if it was stopped before.
        samples: Number of samples of this run.
        series: The series of this run, as far as they are counted.
    """

    begin: int
    end: int
    complete: bool = False
    samples: int = 0
    series: set[tuple[str, str]] = field(default_factory=set)


def archive_folder(settings: Settings) -> TopicFolder:
    """The archive's folder of metrics.

    Raises:
        NewnormalError: ``SETTING_INVALID`` if the settings name no archive.
    """
    if settings.archive.path is None:
        accepted = "the folder of the archive; the pipeline must have the same setting, see docs/first-week.md"
        raise NewnormalError("SETTING_INVALID", "archive.path is empty", "archive.path", accepted, _NOW)
    return TopicFolder(settings.archive.path.expanduser().resolve(), settings.reads(topics.TELEMETRY))


@contextmanager
def alone(folder: TopicFolder) -> Iterator[None]:
    """Lets no other import write to the archive meanwhile; the job ``archive`` may go on.

    Raises:
        NewnormalError: ``ALREADY_RUNNING``; ``FILE_UNUSABLE`` if the archive cannot be written.
    """
    try:
        held = try_lock(folder.importing.with_name(f"{folder.topic}.lock"))
    except OSError as error:
        raise unwritable(folder, error) from None
    if held is None:
        what, accepted = "another process imports to this archive", "that process ended"
        raise NewnormalError("ALREADY_RUNNING", what, str(folder.root), accepted, _NOW)
    with held:
        yield


def bounds(settings: Settings, found: Edge, begin: int, end: int | None, now: int) -> tuple[int, int]:
    """The event times to import: from ``begin`` up to what is there, or up to ``end`` if that is earlier.

    Raises:
        NewnormalError: ``IMPORT_BOUNDS`` if nothing is left to import, or the end lies behind what is there;
            ``SETTING_INVALID`` if the archive would not keep what is imported.
    """
    last = found.time if found.time is not None else now
    if end is not None and end > last and not found.origin:
        if found.time is None:
            what, accepted = f"--to {iso(end)} lies in the future", "a time until now"
        else:
            what = f"--to {iso(end)} lies behind {iso(last)}, from where on the log has samples"
            accepted = f"--to {iso(last)} or earlier, or no --to"
        raise NewnormalError("IMPORT_BOUNDS", what, "--to", accepted, _NOW)
    last = last if end is None else min(end, last)
    kept = settings.retention.archive
    if kept and begin < now - duration_ms(kept):
        what = f"retention.archive = {kept!r}: a running pipeline would delete what is older"
        accepted = f"a longer time or none; or --from -{kept}"
        raise NewnormalError("SETTING_INVALID", what, "retention.archive", accepted, _NOW)
    return begin, last


class Import:
    """One run of an import.

    Args:
        settings: The settings, with the address of Kafka filled in.
        source: Where history comes from.
        intake: What makes samples of it.
        stop: When set, the run ends after the present slice.
    """

    def __init__(self, settings: Settings, source: HistorySource, intake: Intake, stop: Event) -> None:
        self._settings, self._source, self._intake, self._stop = settings, source, intake, stop
        self.folder = archive_folder(settings)

    def run(self, found: Edge, begin: int, end: int, progress: Progress) -> Imported:
        """Imports from the end to the beginning; the caller holds `alone`.

        Args:
            found: What history is put before.
            begin: First event time, epoch milliseconds.
            end: The event time behind the last one.
            progress: Is told how far the import has come.

        Raises:
            NewnormalError: ``IMPORT_TOO_LARGE``; ``FILE_UNUSABLE`` if the archive cannot be written; and those of the
                source. What was written by then is complete, and the next run goes on before it.
        """
        out_of_order = duration_ms(self._settings.watermark.out_of_orderness)
        latest = end - 1 - (0 if found.origin else out_of_order)
        result = Imported(end, end)
        try:
            clean(self.folder)
            writer = HistoryWriter(self.folder, found.places, latest, self._source.origin)
            for first, last, records in self.slices(begin, end):
                writer.write(first, last, records)
                result.begin = first
                result.samples += records.num_rows
                result.series |= series_of(records)
                progress(result.samples, (end - first) / max(1, end - begin))
        except OSError as error:
            raise unwritable(self.folder, error) from None
        result.complete = result.begin <= begin
        return result

    def slices(self, begin: int, end: int) -> Iterator[tuple[int, int, pa.Table]]:
        """Slices of event time with their records, the newest first, until all are there or the run is stopped.

        Slices become longer and shorter, so that each has some hundred thousand records.
        """
        length, last = _FIRST, end
        while last > begin and not self._stop.is_set():
            first = max(begin, last - length)
            try:
                records = self._source.read(first, last, self._intake)
                if records.num_rows > MOST_ROWS and last - first > _SHORTEST:
                    raise TooMuchError(f"more than {MOST_ROWS:,} samples")
            except TooMuchError as error:
                if last - first <= _SHORTEST:
                    why = f"{error} between {iso(first)} and {iso(last)}"
                    raise too_large(why, self._source.origin) from None
                length = max(_SHORTEST, (last - first) // 2)
                continue
            except StoppedError:
                return
            yield first, last, records
            last = first
            if records.num_rows < _FEW_ROWS:
                length = min(_LONGEST, 2 * length)
            elif records.num_rows > _MANY_ROWS:
                length = max(_SHORTEST, length // 2)


def series_of(records: pa.Table) -> set[tuple[str, str]]:
    """Machine and metric of each series of some records."""
    if not records.num_rows:
        return set()
    machines, metrics = (records[name].combine_chunks() for name in ("entity", "metric"))
    pairs = np.unique(np.stack([machines.indices.to_numpy(), metrics.indices.to_numpy()]), axis=1)
    names = machines.dictionary.to_pylist(), metrics.dictionary.to_pylist()
    return {(names[0][a], names[1][b]) for a, b in pairs.T.tolist()}


def removed(settings: Settings) -> tuple[int, int] | None:
    """Removes all imported history; returns its first event time and the one behind its last, if there was any.

    Raises:
        NewnormalError: ``ALREADY_RUNNING``; ``FILE_UNUSABLE``.
    """
    folder = archive_folder(settings)
    with alone(folder):
        there = list(imported(folder.writes()))
        try:
            remove(folder, [write for write, _ in there])
        except OSError as error:
            raise unwritable(folder, error) from None
    return (min(a for _, (a, _) in there), max(b for _, (_, b) in there)) if there else None


def unwritable(folder: TopicFolder, error: OSError) -> NewnormalError:
    """The error for an archive that cannot be written."""
    accepted = "room on the disk, and a folder that can be written"
    now = "what was imported stays, and the same command goes on there"
    return NewnormalError("FILE_UNUSABLE", str(error), str(folder.root), accepted, now)
