"""What a site keeps from its first start: how many partitions its topics and how many shards its jobs have.

Topics and checkpoints cannot be read with other numbers. So a command that begins a site with numbers of its own writes
them into the state folder, and every later command that uses the folder has them without being told.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from engine.files import write_whole

if TYPE_CHECKING:
    from pipelines.contracts.settings.tree import Settings

_FILE = "site.json"


class SiteSource(PydanticBaseSettingsSource):
    """Reads the numbers from the state folder and namespace that the stronger sources name."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Not used: the source gives all its values at once."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The sections with their settings; empty where no site was begun.

        Raises:
            ValueError: The file holds something else.
        """
        default = self.settings_cls.model_fields["state_dir"].default
        state = Path(self.current_state.get("state_dir", default)).expanduser()
        file = state / f"{self.current_state.get('namespace', '')}{_FILE}"
        if not file.is_file():
            return {}
        try:
            return dict(json.loads(file.read_text()))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file} does not hold the numbers of a site: {error}") from None


def begin(settings: Settings, partitions: int, shards: int) -> bool:
    """Lets a site with embedded servers begin with these numbers, unless it has begun already or others were chosen.

    Args:
        settings: The settings of the command.
        partitions: Partitions of each topic.
        shards: Shards of each job.

    Returns:
        Whether the site begins so; then the settings must be loaded again.
    """
    chosen = "partitions" in settings.kafka.model_fields_set or "shards" in settings.engine.model_fields_set
    begun = settings.folder("checkpoints").exists() or (settings.state / "kafka").exists()
    if chosen or begun or settings.kafka.bootstrap:
        return False
    with suppress(OSError):  # the servers, which need the folder too, say what is wrong with it
        settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        site = {"kafka": {"partitions": partitions}, "engine": {"shards": shards}}
        write_whole(settings.file(_FILE), json.dumps(site) + "\n")
        return True
    return False
