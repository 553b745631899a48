"""docs/troubleshooting.md names findings that exist, and says of each error code what errors.md says it means."""

from __future__ import annotations

import re
from pathlib import Path

import pipelines.cli.docs  # noqa: F401  registers all error codes
from engine.spec.errors import REGISTRY
from pipelines.cli.reference import BEGIN, tables
from pipelines.doctor.finding import KINDS

PAGE = Path(__file__).parents[3] / "docs" / "troubleshooting.md"
CODE = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)`")


def test_the_symptoms_lead_to_codes_that_exist_and_each_finding_is_in_the_table_once() -> None:
    symptoms, _, _ = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    named = set(CODE.findall(symptoms))
    assert named <= KINDS.keys() | REGISTRY.keys()
    assert len(named & KINDS.keys()) > 20
    for code in KINDS:
        assert tables().count(f"| `{code}` |") == 1


def test_each_finding_says_what_it_means_and_what_to_do() -> None:
    assert all(kind.means and kind.do for kind in KINDS.values())
    subjects = {kind.subject for kind in KINDS.values()}
    assert subjects == {"Environment", "Jobs", "Kafka", "Elasticsearch", "Notifications", "Scores for Prometheus"}
