"""Reads all settings, and refuses what is wrong or contradicts itself with a message that names the setting."""

from __future__ import annotations

import os
import re
from typing import Any

from pydantic import ValidationError

from engine.address import Address
from engine.spark import hadoop_path
from engine.spark.checkpoint_lock import NO_NAMESPACE
from engine.spec.errors import NewnormalError
from pipelines.contracts import setting_errors, topics
from pipelines.contracts.settings.logins.elasticsearch import contradictions as elasticsearch_contradictions
from pipelines.contracts.settings.logins.elasticsearch import elasticsearch_address
from pipelines.contracts.settings.logins.kafka import contradictions as kafka_contradictions
from pipelines.contracts.settings.logins.kafka import kafka_address
from pipelines.contracts.settings.notify import contradictions as notify_contradictions
from pipelines.contracts.settings.scores import contradictions as scores_contradictions
from pipelines.contracts.settings.servers import ElasticsearchSettings
from pipelines.contracts.settings.spark import contradictions as spark_contradictions
from pipelines.contracts.settings.state_folder import SITE_FILE
from pipelines.contracts.settings.tree import Settings
from pipelines.contracts.settings.web_servers import contradictions as access_contradictions

_SERVERS = {
    "console": "the console",
    "view": "the state view",
    "gateway": "the gateway",
    "notify": "the metrics of notifications",
}
"""The sections of our web servers, and what each is."""
_MOST_SLICES = 1_000
"""The most sliding windows that one record may belong to; each of them keeps state."""


def load(**overrides: Any) -> Settings:
    """Reads and validates all settings.

    Args:
        overrides: Values of the command line by dotted name, such as ``kafka.bootstrap``; ``None`` means not given.

    Raises:
        NewnormalError: ``SETTING_INVALID``; the message names each wrong setting, its value and what is accepted.
            ``LOGIN_FILE`` if a file with a secret or a certificate cannot be used.
    """
    tree: dict[str, Any] = {}
    for dotted, value in overrides.items():
        if value is not None:
            *parents, leaf = dotted.split(".")
            node = tree
            for parent in parents:
                node = node.setdefault(parent, {})
            node[leaf] = value
    wrong = setting_errors.unknown_variables(os.environ, Settings)
    try:
        settings = Settings(**tree)
    except ValidationError as error:
        wrong |= setting_errors.refused(error, Settings, overrides, os.environ)
        raise setting_errors.refusal(wrong) from None
    except (OSError, ValueError) as error:
        accepted, now = "TOML, see docs/settings.md", "nothing was started"
        raise NewnormalError("SETTING_INVALID", str(error), "newnormal.toml, environment", accepted, now) from None
    wrong |= _contradictions(settings, overrides)
    if wrong:
        raise setting_errors.refusal(wrong)
    hadoop_path.configure(settings.spark.options)
    return _with_logins(settings, overrides)


def _with_logins(settings: Settings, overrides: dict[str, Any]) -> Settings:
    """The settings, in which the addresses that were given know how clients log in.

    An override that is an `Address`, as it comes from other settings, keeps the login that it has.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if a file that the settings name cannot be used.
    """
    kafka, elastic = settings.kafka, settings.elasticsearch
    brokers, url = overrides.get("kafka.bootstrap"), overrides.get("elasticsearch.url")
    if kafka.bootstrap:
        address = brokers if isinstance(brokers, Address) else kafka_address(kafka)
        kafka = kafka.model_copy(update={"bootstrap": address})
    if elastic.url:
        address = url if isinstance(url, Address) else elasticsearch_address(elastic)
        elastic = elastic.model_copy(update={"url": address})
    return settings.model_copy(update={"kafka": kafka, "elasticsearch": elastic})


def _contradictions(settings: Settings, overrides: dict[str, Any]) -> setting_errors.Wrong:
    """The settings that contradict another setting."""
    kafka, shards, window = settings.kafka, settings.engine.shards, settings.window
    wrong: dict[str, tuple[str, str]] = {}
    if kafka.partitions % shards:
        what = f"kafka.partitions = {kafka.partitions}, no multiple of engine.shards = {shards}"
        begun = settings.file(SITE_FILE)
        kept = f"; {begun} keeps the numbers with which the site began" if begun.is_file() else ""
        wrong["kafka.partitions"] = (what, f"a multiple of it: one shard writes each topic partition{kept}")
    size, every = window.size_ms, window.step_ms
    if size % every or size // every > _MOST_SLICES:
        what = f"window.every = {window.every!r}, but window.size = {window.size!r}"
        wrong["window.every"] = (what, f"a divisor of the size, at least size / {_MOST_SLICES}")
    wrong |= _one_index_for_two(settings.elasticsearch)
    for name, who in _SERVERS.items():
        wrong |= access_contradictions(name, who, getattr(settings, name))
    wrong |= kafka_contradictions(kafka) | elasticsearch_contradictions(settings.elasticsearch)
    wrong |= spark_contradictions(settings.spark) | notify_contradictions(settings.notify)
    wrong |= scores_contradictions(settings.scores)
    if mixed := _mixed(settings):
        wrong["namespace"] = (f"namespace = {settings.namespace!r}, {mixed}", "another name")
    place = setting_errors.place
    return {name: (what, place(name, overrides, os.environ), accepted) for name, (what, accepted) in wrong.items()}


def _one_index_for_two(elastic: ElasticsearchSettings) -> dict[str, tuple[str, str]]:
    """Names of indices that would hold documents of two kinds: what, and what is accepted."""
    wrong: dict[str, tuple[str, str]] = {}
    names = {elastic.index: "elasticsearch.index"}
    for field in ("incidents", "changes"):
        name = getattr(elastic, field)
        if name in names:
            what = f"elasticsearch.{field} = {name!r}, as {names[name]}"
            wrong[f"elasticsearch.{field}"] = (what, "another name: verdicts, incidents, changes each have indices")
        names[name] = f"elasticsearch.{field}"
    return wrong


def _mixed(settings: Settings) -> str | None:
    """What the namespace would share with no namespace, as the rest of a message; ``None`` if it shares nothing."""
    namespace, names = settings.namespace, set(topics.NAMES)
    if not namespace:
        return None
    if namespace == f"{NO_NAMESPACE}.":
        return "whose checkpoints would be the checkpoints of no namespace"
    if shared := sorted(names & {settings.topic(name) for name in names}):
        return f"whose topic {shared[0]} would be a topic of no namespace"
    if re.match(rf"{re.escape(settings.elasticsearch.index)}-[12]", namespace):
        return f"whose indices would be taken for those of the alias {settings.elasticsearch.index}"
    return None
