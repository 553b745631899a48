"""No agent sends a metric with a name that verdicts have: it would be taken for what the detector says."""

from __future__ import annotations

import json

import pytest

from engine.formats.json_decoder import FIELD_INVALID
from engine.spec.decoder import Messages
from pipelines.contracts.records.news import LIVING
from pipelines.contracts.records.novelty import JOINED, PEERS, UNTIL_FULL
from pipelines.formats.catalogue import BY_NAME
from pipelines.formats.rules import Rules
from tests.pipelines.formats.examples_times import T0
from tests.pipelines.formats.remote_writes import request, series

NAMES = (JOINED, LIVING, f"{PEERS}cpu.util", f"disk.used_percent{UNTIL_FULL}", f"x{UNTIL_FULL}\n\n")
OTHERS = ("machine", "_machines", "_peers", "x_peers.y", "~full.x", "x~full-of", "living", "_living.room")


def own(metric: str) -> bytes:
    return json.dumps({"@timestamp": T0, "host.name": "a", "metric": metric, "value": 1.5}).encode()


def remote(metric: str) -> bytes:
    return request(series({"__name__": metric, "host": "a"}, (1, T0)))


@pytest.mark.parametrize("name", ["json", "remote-write"])
@pytest.mark.parametrize("alone", [True, False])
def test_reserved_names_are_refused_and_no_others(name: str, alone: bool) -> None:
    decoder = BY_NAME[name].build(Rules())
    make = own if name == "json" else remote
    sent = [make(metric) for metric in (*NAMES, *OTHERS)]
    batches = [[one] for one in sent] if alone else [sent]
    found, refused = [], []
    for batch in batches:
        decoded = decoder.decode(Messages.of(batch))
        found += decoded.records.column("metric").to_pylist()
        refused += [(code, why) for _, code, why in decoded.refused]
    assert found == list(OTHERS)
    assert len(refused) == len(NAMES)
    assert all(code == FIELD_INVALID and "reserved" in why for code, why in refused)
