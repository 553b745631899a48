"""Settings that a command prefers, where the user has chosen nothing."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.contracts.settings import load

SMALL: Mapping[str, object] = {
    "engine.memory": "small",
    "engine.driver_memory": "512m",
    "engine.cores": 1,
    "engine.jvm_optimizes": "never",
    "engine.max_messages": 50_000,
    "engine.max_bytes": 8_000_000,
    "embedded.kafka_heap": "256m",
    "embedded.elasticsearch_heap": "512m",
}
"""What `newnormal run --small` prefers; docs/memory.md says what each is worth."""


def prefer(overrides: dict[str, object], preferred: Mapping[str, object]) -> dict[str, object]:
    """Adds to the overrides of a command what it prefers and neither they nor a file nor the environment has chosen.

    Args:
        overrides: As for `load`.
        preferred: Values by dotted name.

    Returns:
        What was added.
    """
    chosen = load(**overrides)
    sections = {name: name.split(".") for name in preferred}
    added = {
        name: preferred[name]
        for name, (section, field) in sections.items()
        if field not in getattr(chosen, section).model_fields_set
    }
    overrides.update(added)
    return added
