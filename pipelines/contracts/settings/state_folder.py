"""The state folder as the weakest source of settings: it knows the numbers with which a site began."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

SITE_FILE = "site.json"
"""Name of the file with a site's settings in the state folder, after the namespace."""


class StateFolderSource(PydanticBaseSettingsSource):
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
        state, namespace = self.current_state.get("state_dir", default), self.current_state.get("namespace", "")
        try:
            file = Path(state).expanduser() / f"{namespace}{SITE_FILE}"
            content = file.read_bytes()
        except (OSError, RuntimeError, TypeError, ValueError):
            return {}  # no site has begun; or there is no such folder, which whoever needs one says
        try:
            return dict(json.loads(content))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file} does not hold the numbers of a site: {error}") from None
