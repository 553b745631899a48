"""How far the scores of a view were pushed, in a file of its folder: where it goes on, and what `doctor` looks at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.files import write_whole
from pipelines.contracts.settings import Settings

_FILE = "scores.json"


@dataclass
class Sent:
    """What one process of the view has pushed.

    Attributes:
        until: End of the last window that was pushed, epoch milliseconds; ``None``: none was yet.
        samples: Samples that the receiver has taken.
        refused: Samples that it will never take, and that are not sent again.
        skipped: Windows that were not pushed, as the view had forgotten them by the time the receiver answered.
        refused_at: When it last refused some, epoch milliseconds.
        failing_since: Since when it has not answered, epoch milliseconds; ``None``: it answers.
        reason: What it said last when it took nothing.
        receiver: Its address, without what may be a secret.
    """

    until: int | None = None
    samples: int = 0
    refused: int = 0
    skipped: int = 0
    refused_at: int | None = None
    failing_since: int | None = None
    reason: str = ""
    receiver: str = ""

    def write(self, folder: Path) -> None:
        """Writes the file of a view's folder."""
        write_whole(folder / _FILE, json.dumps(asdict(self)))


def sent(folder: Path) -> Sent | None:
    """What the file of a view's folder says; ``None`` if there is none, or none that can be read."""
    try:
        return Sent(**json.loads((folder / _FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def all_sent(settings: Settings) -> Iterator[tuple[Path, Sent]]:
    """What the views of this machine have pushed, of all versions and parts, each with its folder."""
    common = settings.common_folder("view")
    for folder in sorted([*common.glob("part-*"), *common.parent.glob(f"{common.name}@*/part-*")]):
        if found := sent(folder):
            yield folder, found
