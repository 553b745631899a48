"""The rule by which the labels of a sample become its machine and the instance in its metric's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pipelines.contracts.settings.input import InputSettings, names, told_for
from pipelines.formats.pods import Subject, divided, pod_of, subject, tagged_pod
from pipelines.formats.remembering import characters, remembered

FOLDED = "*"
"""Stands in a metric's name for the value of a label that was folded."""

_RANDOM = re.compile(r"[0-9a-fA-F]{32,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WITH_PORT = re.compile(r"(?:\[([^\]]*)\]|([^:]*)):([0-9]{1,5})")
_LONGEST_WITH_PORT = 1_024
"""A longer text is the name of no machine; it is left as it is, so that no copies of it are made."""
_CACHED = 1 << 17


@dataclass(frozen=True)
class LabelRule:
    """Which label names the machine, and which labels distinguish the series of a metric.

    Args:
        machine: Labels that may name the machine; the first one that a sample has is taken. A port in it, as in
            Prometheus' ``instance``, becomes the label ``port``; so does the port in another of these labels that
            names the same machine.
        left_out: Labels that describe the machine or the instance, but do not distinguish two series of it.
        folded: Labels with very many values; the value is replaced by `FOLDED`. That is also done for values that are
            UUIDs or at least 32 hexadecimal digits, but for labels whose names end with ``uuid``: these are of disks,
            file systems and machines, which last.
        default: The machine where no label names one; empty: none.
        random: Whether values that are UUIDs and the like are folded.
        pods: Whether what is about a pod of Kubernetes is of the machine ``namespace/pod``, whichever other labels
            might name it, see `pipelines.formats.pods`.
    """

    machine: tuple[str, ...] = names(InputSettings().machine)
    left_out: frozenset[str] = frozenset(names(InputSettings().left_out))
    folded: frozenset[str] = frozenset(names(InputSettings().folded))
    default: str = ""
    random: bool = True
    pods: bool = True

    @classmethod
    def of(cls, settings: InputSettings, topic: str = "") -> LabelRule:
        """The rule that the settings describe, for a topic without the namespace."""
        left_out, folded = frozenset(names(settings.left_out)), frozenset(names(settings.folded))
        default = told_for(settings.default_machine, topic)
        return cls(names(settings.machine), left_out, folded, default, pods=settings.pods)

    def __hash__(self) -> int:
        return hash(self.machine)  # asked for with each sample; rules that are equal have it in common

    def apply(self, labels: Iterable[tuple[str, str]], fold: bool = True, metric: str = "") -> tuple[str, str]:
        """The machine, empty if no label names it; and the instance in braces, empty if nothing distinguishes series.

        Args:
            labels: Names and values. A label without a value counts as absent.
            fold: False for counters that come alone in their messages: folded, several would be mixed up to one.
            metric: The name of the metric, which says what it is about if a label names a pod; empty: not known.

        >>> LabelRule().apply([("instance", "web-1:9100"), ("device", "sda"), ("dc", "lab")])
        ('web-1', '{device=sda,port=9100}')
        >>> LabelRule().apply([("host", "a"), ("container", "0b6c1f2e-0f5a-4b7e-9d3c-1c2d3e4f5a6b")])
        ('a', '{container=*}')
        >>> LabelRule().apply([("instance", "10.0.0.5:80"), ("namespace", "shop"), ("pod", "cart-0"), ("code", "200")])
        ('shop/cart-0', '{code=200}')
        """
        return _remembered(self, tuple(labels), fold, self._about(metric))

    def apply_once(self, labels: Iterable[tuple[str, str]], fold: bool = True, metric: str = "") -> tuple[str, str]:
        """As `apply`, but not remembered: for those who remember what they make of it."""
        return _applied(self, tuple(labels), fold, self._about(metric))

    def _about(self, metric: str) -> Subject:
        return subject(metric) if self.pods else "pod"

    @property
    def scraped(self) -> LabelRule:
        """The rule for Prometheus: where the setting is the default, ``host`` does not come before ``instance``.

        What is scraped has labels of its own, such as the ``host`` of an ingress; ``instance`` is what was asked.

        >>> LabelRule().scraped.apply([("instance", "10.0.0.5:10254"), ("host", "shop.example.com")])
        ('10.0.0.5', '{host=shop.example.com,port=10254}')
        """
        if self.machine != names(InputSettings().machine):
            return self
        others = tuple(name for name in self.machine if name != "host")
        at = others.index("instance") + 1
        return replace(self, machine=(*others[:at], "host", *others[at:]))

    @property
    def host_is_node(self) -> bool:
        """Whether a label ``host`` is where something runs, and not what it serves, see `scraped`."""
        order = self.machine
        return "host" in order and not ("instance" in order and order.index("instance") < order.index("host"))

    def pod_of(self, tags: Mapping[str, str]) -> str:
        """The pod that an agent's tags name, for log lines and events, which have them beside their own fields.

        >>> LabelRule().pod_of({"pod": "cart-0", "namespace": "shop"}), LabelRule(pods=False).pod_of({"pod": "cart-0"})
        ('shop/cart-0', '')
        """
        return tagged_pod(tags) if self.pods else ""

    def machine_of(self, labels: Mapping[str, str]) -> str:
        """The machine alone, for log lines, whose other labels may have any values; empty if no label names it.

        >>> LabelRule().machine_of({"message": "no", "node": "b", "host": "a:22"})
        'a'
        """
        if self.pods and (pod := pod_of(labels)):
            return pod
        for name in self.machine:
            if value := labels.get(name):
                return machine_and_port(value)[0]
        return self.default


LABELS = LabelRule()
"""The rule of the default settings."""


def _applied(rule: LabelRule, labels: tuple[tuple[str, str], ...], fold: bool, about: Subject) -> tuple[str, str]:
    rest = {name: value for name, value in labels if value}
    if rule.pods:
        pod, rest = divided(rest, about, rule.host_is_node)
        if pod:
            return pod, _instance(rule, rest, fold)
    label = next((name for name in rule.machine if name in rest and not _is_numa(name, rest[name])), None)
    machine = rest.pop(label) if label else rule.default
    machine, port = machine_and_port(machine)
    if port:
        rest.setdefault("port", port)
    for name in [each for each in rule.machine if each in rest]:
        again, port = machine_and_port(rest[name])
        if again == machine and (not port or rest.setdefault("port", port) == port):
            del rest[name]
    return machine, _instance(rule, rest, fold)


def _instance(rule: LabelRule, rest: dict[str, str], fold: bool) -> str:
    """What distinguishes series, in braces; empty if nothing does."""
    inside = []
    for name, value in sorted(rest.items()):
        if name not in rule.left_out:
            random = fold and (name in rule.folded or (rule.random and _is_random(name, value)))
            inside.append(f"{name}={FOLDED if random else value}")
    return f"{{{','.join(inside)}}}" if inside else ""


def _is_random(name: str, value: str) -> bool:
    """Whether a label holds a UUID or the like that does not last, as those of disks, file systems and machines do."""
    return _RANDOM.fullmatch(value) is not None and not name.lower().endswith("uuid")


def _is_numa(name: str, value: str) -> bool:
    """Whether a label is the number of a node of memory, and no machine."""
    return name == "node" and value.isdigit() and len(value) <= 3


_remembered = remembered(_CACHED, lambda rule, labels, fold, about: characters(labels))(_applied)


def machine_and_port(value: str) -> tuple[str, str]:
    """The machine and the port of a label that names a machine; an empty port if it has none."""
    if type(value) is str and ":" not in value:
        return value, ""
    match = _WITH_PORT.fullmatch(value) if len(value) <= _LONGEST_WITH_PORT else None
    return (match[1] or match[2] or "", match[3]) if match else (value, "")
