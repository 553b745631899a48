"""Compares the saved objects with those on a Kibana, and installs what is new or outdated; what users changed stays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dashboards.kibana.saved_objects import SavedObject
from dashboards.kibana.server import Kibana
from dashboards.marks import Compared, Mark, content_hash, status, this_version

_AS_TEXT = ("panelsJSON", "optionsJSON")
_VIEW = ("title", "name", "timeFieldName")


def compared(kibana: Kibana, rendered: Sequence[SavedObject]) -> list[Compared]:
    """How all objects differ from those on the server; changes nothing.

    A data view that is there is `same` while it has our title, name and time field: formats and fields that users add
    to it are theirs. A dashboard is ours while it has its mark and nobody has changed it since (`dashboards.marks`).
    """
    held = kibana.held(rendered)
    return [_compare(saved, held.get(saved["id"])) for saved in rendered]


def install(kibana: Kibana, rendered: Sequence[SavedObject], replace: bool = False) -> list[Compared]:
    """Installs what is new or outdated, and what users changed if they want this.

    Args:
        kibana: The server.
        rendered: All objects.
        replace: Whether objects that users changed are replaced; else they stay.

    Returns:
        How the objects differed before.
    """
    before = compared(kibana, rendered)
    chosen = [saved for saved, one in zip(rendered, before, strict=True) if one.is_replaced(replace)]
    if chosen:
        kibana.put([_marked(saved, _content(saved)) for saved in chosen])
        held = kibana.held(chosen)
        # Kibana may have added defaults to what it was given: the mark says what it holds
        other = [saved for saved in chosen if _content(held[saved["id"]]) != _content(saved)]
        marked = [_marked(saved, _content(held[saved["id"]])) for saved in other if saved["type"] == "dashboard"]
        if marked:
            kibana.put(marked)
    return before


def _compare(rendered: SavedObject, held: SavedObject | None) -> Compared:
    title = rendered["attributes"]["title" if rendered["type"] == "dashboard" else "name"]
    if held is None:
        return Compared(title, "new")
    if rendered["type"] != "dashboard":
        same = all(held["attributes"].get(key) == rendered["attributes"][key] for key in _VIEW)
        return Compared(title, "same" if same else "changed")
    mark = Mark.of(held["attributes"].get("description", ""))
    standing = status(mark, content_hash(_content(held)), content_hash(_content(rendered)))
    return Compared(title, standing, mark.version if mark else "")


def _content(saved: SavedObject) -> dict[str, Any]:
    """What users see of a dashboard, without its description; references in any order."""
    attributes = {key: value for key, value in saved["attributes"].items() if key != "description"}
    for key in _AS_TEXT:
        if isinstance(attributes.get(key), str):
            attributes[key] = json.loads(attributes[key])
    references = sorted((each["name"], each["type"], each["id"]) for each in saved["references"])
    return {"attributes": attributes, "references": [list(each) for each in references]}


def _marked(saved: SavedObject, held: dict[str, Any]) -> SavedObject:
    if saved["type"] != "dashboard":
        return saved
    mark = Mark(this_version(), content_hash(_content(saved)), content_hash(held))
    described = mark.after(saved["attributes"]["description"])
    return {**saved, "attributes": {**saved["attributes"], "description": described}}
