"""Each record's Elasticsearch mapping and page of the docs come from its one definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from engine.spec.record import Record
from pipelines.cli.docs import docs
from pipelines.cli.reference import commands_page, with_findings
from pipelines.contracts.records import ALL, Log, Novelty
from pipelines.contracts.schemas import errors_page, mapping, records_page, settings_page
from pipelines.jobs.pages import jobs_page

ROOT = Path(__file__).parents[3]


def leaf(record: type[Record], dotted: str) -> dict[str, Any]:
    node: dict[str, Any] = mapping(record)
    for part in dotted.split("."):
        node = node["properties"][part]
    return node


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.__name__)
def test_every_json_name_has_a_mapping(record: type[Record]) -> None:
    for name, info in record.model_fields.items():
        assert {"type", "properties"} & leaf(record, info.alias or name).keys()


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.__name__)
def test_the_docs_name_every_field_and_every_field_is_described(record: type[Record]) -> None:
    page = records_page([record])
    for name, info in record.model_fields.items():
        assert f"| `{name}` | `{info.alias or name}` |" in page
        assert info.description


def test_types_of_elasticsearch_follow_the_marks() -> None:
    assert leaf(Novelty, "host.name")["type"] == "keyword"
    assert leaf(Novelty, "kind")["type"] == "keyword"
    assert leaf(Novelty, "record_score") == {"type": "double"}
    assert leaf(Novelty, "revision") == {"type": "long"}
    assert leaf(Novelty, "actual") == {"type": "double", "index": False}
    assert leaf(Log, "message") == {"type": "text"}
    for instant in ("@timestamp", "since", "event.ingested"):
        assert leaf(Novelty, instant) == {"type": "date", "format": "epoch_millis||strict_date_optional_time"}


def test_evidence_takes_any_key_while_all_else_is_strict() -> None:
    found = mapping(Novelty)
    assert found["dynamic"] == "strict"
    assert leaf(Novelty, "evidence") == {"type": "object", "dynamic": "true", "subobjects": False}
    number = {"type": "double", "index": False}
    assert {"evidence": {"path_match": "evidence.*", "mapping": number}} in found["dynamic_templates"]


def test_the_settings_page_gives_the_environment_variable_and_the_default() -> None:
    assert "| `elasticsearch.refresh` | `NEWNORMAL_ELASTICSEARCH__REFRESH` | `500ms` |" in settings_page()


def test_a_stale_page_fails_the_check_until_it_is_written(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(docs)
    run = CliRunner().invoke
    assert run(app, ["--check", "--folder", str(tmp_path)]).exit_code == 1
    assert run(app, ["--folder", str(tmp_path)]).exit_code == 0
    assert run(app, ["--check", "--folder", str(tmp_path)]).exit_code == 0


def test_the_pages_of_this_repository_are_up_to_date() -> None:
    assert (ROOT / "docs/errors.md").read_text(encoding="utf-8") == errors_page(), "run: newnormal docs"
    assert (ROOT / "docs/jobs.md").read_text(encoding="utf-8") == jobs_page(), "run: newnormal docs"
    assert (ROOT / "docs/commands.md").read_text(encoding="utf-8") == commands_page(), "run: newnormal docs"
    troubles = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    assert "| `NO_INPUT` |" in troubles and troubles == with_findings(troubles), "run: newnormal docs"
    assert (ROOT / "docs/records.md").read_text(encoding="utf-8") == records_page(), "run: newnormal docs"
    assert (ROOT / "docs/settings.md").read_text(encoding="utf-8") == settings_page(), "run: newnormal docs"
