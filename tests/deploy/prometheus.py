"""The files for Prometheus as the tests read them, and what Prometheus does with the labels of what it sends."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
Labels = dict[str, str]


def _read(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


GROUPS = [group for path in sorted(FOLDER.glob("*.rules.yaml")) for group in _read(path.name)["groups"]]
RULES = [rule for group in GROUPS for rule in group["rules"]]
(_WRITE,) = _read("remote-write.yaml")["remote_write"]


def relabelled(found: Iterable[Labels]) -> list[Labels]:
    """The series that are sent, after `write_relabel_configs`, whose regular expressions are anchored."""
    return [labels for each in found if (labels := _applied(each)) is not None]


def _applied(labels: Labels) -> Labels | None:
    for step in _WRITE["write_relabel_configs"]:
        regex = re.compile(step["regex"])
        if step["action"] == "labeldrop":
            labels = {name: value for name, value in labels.items() if not regex.fullmatch(name)}
            continue
        value = ";".join(labels.get(name, "") for name in step["source_labels"])
        if step["action"] == "replace":
            labels = labels | ({step["target_label"]: found[1]} if (found := regex.fullmatch(value)) else {})
            continue
        if bool(regex.fullmatch(value)) != (step["action"] == "keep"):
            return None
    return labels
