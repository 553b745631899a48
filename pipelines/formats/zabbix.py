"""The decoder of Zabbix' real-time export: history and trends of items, one object per line.

Source: the Zabbix manual, appendix "Newline-delimited JSON export protocol".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.message_decoder import MessageDecoder, Sample, number_of
from pipelines.formats.refusals import MACHINE_UNKNOWN, TEXT_FIELD, RefusedError, no_machine
from pipelines.formats.samples import short

_FLOAT, _UNSIGNED = 0, 3
_TREND = ("min", "avg", "max")


@dataclass(frozen=True)
class ZabbixDecoder(MessageDecoder):
    """Decodes ``{"host": {"host": …, "name": …}, "itemid": …, "name": …, "clock": …, "ns": …, "value": …, "type": 0}``.

    An item's name is the metric, its tags are labels. A trend is ``name.min``, ``name.avg`` and ``name.max``. All are
    gauges. Items of text are refused.

    Args:
        labels: Which tags distinguish series, and which are left out.

    >>> item = {"host": {"host": "a", "name": "A"}, "itemid": 4, "name": "CPU load", "clock": 1795220820}
    >>> list(ZabbixDecoder().samples(item | {"value": 0.5, "type": 0, "item_tags": [{"tag": "cpu", "value": "all"}]}))
    [(1795220820000, 'a', 'CPU load{cpu=all}', 0.5, 'gauge')]
    """

    labels: LabelRule = LABELS

    def samples(self, message: Any) -> Iterator[Sample]:
        if message["type"] not in (_FLOAT, _UNSIGNED):
            raise RefusedError(TEXT_FIELD, f"the item {str(message.get('name'))[:80]!r} is text, and no sample")
        host = message["host"]
        machine = (host.get("host") or host.get("name")) if isinstance(host, dict) else host
        if not machine:
            raise RefusedError(MACHINE_UNKNOWN, no_machine())
        inside = ""
        if tags := message.get("item_tags"):
            labels = [(each["tag"], each["value"] or "true") for each in tags]
            inside = self.labels.apply(((self.labels.machine[0], machine), *labels))[1]
        time, name = message["clock"] * 1000 + message.get("ns", 0) // 1_000_000, message["name"]
        if "value" in message:
            yield time, machine, short(name + inside), number_of(message["value"]), "gauge"
        else:
            for part in _TREND:
                yield time, machine, short(f"{name}.{part}{inside}"), number_of(message[part]), "gauge"

    def only(self, value: bytes, records: Collection[int]) -> bytes | None:
        return value if b'"value"' in value else None
