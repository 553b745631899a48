"""The JSON models for Grafana: what Grafana defines, in the shape of what it exports, with stable uids."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dashboards.grafana.models import dashboards, data_sources
from dashboards.panels import DASHBOARDS, Site
from dashboards.panels.catalogue import same_fields
from dashboards.panels.query import Documents, Top
from dashboards.panels.site import field_types
from pipelines.contracts.records.severity import severity_of
from tests.dashboards.grafana_definitions import Dashboard, DataSource

SITE = Site("plant.novelties", ("v1", "v2"), "plant.incidents", changes="plant.changes")
BOARDS, SOURCES = dashboards(SITE), data_sources(SITE, "http://search:9200")
MAPS = re.compile(r"\.options\.(indexByName|renameByName|excludeByName|includeByName)$")
NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "list", dict: "object", type(None): "null"}

Model = dict[str, Any]


@pytest.mark.parametrize("board", BOARDS, ids=lambda each: each["title"])
def test_every_dashboard_is_what_grafana_defines(board: Model) -> None:
    Dashboard.model_validate(board)


def test_every_data_source_is_what_grafana_defines_and_has_a_name_of_its_own() -> None:
    made = [DataSource.model_validate(each) for each in SOURCES]
    assert len({each.name for each in made}) == len({each.uid for each in made}) == len(made) == 5


def test_every_key_has_been_seen_with_this_type_in_what_grafana_exports() -> None:
    types = exported()
    strange = {(path, NAMES[type(value)]) for path, value in found() if NAMES[type(value)] not in types.get(path, ())}
    assert strange == set()


BREAKS: dict[str, Callable[[Model], Any]] = {
    "an unknown key": lambda board: board.update(rows=[]),
    "a panel of an unknown type": lambda board: board["panels"][0].update(type="graph"),
    "a panel beyond the edge": lambda board: board["panels"][0]["gridPos"].update(x=24),
    "two panels of one id": lambda board: board["panels"][1].update(id=board["panels"][0]["id"]),
    "thresholds that do not rise": lambda board: steps(board).reverse(),
    "an order by no metric": lambda board: terms(board).update(orderBy="9"),
    "time outside": lambda board: buckets(board).reverse(),
    "another data source than the panel's": lambda board: board["panels"][0]["datasource"].update(uid="other"),
    "a number as text": lambda board: board.update(schemaVersion="39"),
    "no legend": lambda board: lines(board)["options"].pop("legend"),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_what_grafana_does_not_define_is_refused(broken: str) -> None:
    board = copy.deepcopy(BOARDS[0])
    BREAKS[broken](board)
    with pytest.raises(ValidationError):
        Dashboard.model_validate(board)


def test_a_score_has_the_colour_of_its_severity() -> None:
    """The bounds are those at which `severity_of` changes its word, found by asking it for each score."""
    begin = {severity_of(score / 10): score / 10 for score in reversed(range(1001))}
    coloured = [p["fieldConfig"]["defaults"] for board in BOARDS for p in board["panels"] if _score(p)]
    found = [each for each in coloured if each.get("max") == 100]
    assert len(found) > 5
    for each in found:
        first, *others = each["thresholds"]["steps"]
        assert first["value"] is None and [step["value"] for step in others] == sorted(begin.values())[1:]


def test_uids_stay_and_differ_between_namespaces() -> None:
    assert dashboards(SITE) == BOARDS and data_sources(SITE, "http://search:9200") == SOURCES
    uids = [{each["uid"] for each in dashboards(Site(alias))} for alias in ("novelties", "plant.novelties")]
    assert len(set.union(*uids)) == 2 * len(BOARDS)


def test_a_click_filters_by_a_field_that_the_documents_of_the_other_dashboard_have() -> None:
    pages = {each.id: each for each in DASHBOARDS}
    clicks = [(dashboard, panel) for dashboard in DASHBOARDS for panel in dashboard.panels if panel.drill]
    assert {panel.id for _, panel in clicks if panel.data == "incidents"} >= {"open-machines", "machines", "metrics"}
    for dashboard, panel in clicks:
        there = pages[panel.drill]
        fields = set.intersection(*(set(field_types(each.data)) for each in there.panels))
        assert not isinstance(panel.query, Documents)
        assert {each.field for each in panel.query.buckets if isinstance(each, Top)} <= fields, (panel.id, there.id)
        if same_fields(dashboard, there):
            assert {each.field for each in dashboard.controls} <= fields, (dashboard.id, there.id)


def steps(board: Model) -> list[Model]:
    return next(p["fieldConfig"]["defaults"]["thresholds"]["steps"] for p in board["panels"] if _score(p))


def _score(panel: Model) -> bool:
    return "thresholds" in panel["fieldConfig"]["defaults"]


def buckets(board: Model) -> list[Model]:
    """The buckets of a panel that has a line for each value of a field."""
    return next(p["targets"][0]["bucketAggs"] for p in board["panels"] if p["type"] == "status-history")


def terms(board: Model) -> Model:
    settings: Model = next(each["settings"] for each in buckets(board) if each["type"] == "terms")
    return settings


def lines(board: Model) -> Model:
    return next(panel for panel in board["panels"] if panel["type"] == "timeseries")


def exported() -> dict[str, set[str]]:
    """Types by path."""
    lines = (Path(__file__).parent / "grafana_shape.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(" ") for line in lines if not line.startswith("#"))
    return {path: set(names.split(",")) for path, names in pairs}


def found() -> Iterator[tuple[str, Any]]:
    """All paths of our dashboards with their values; what differs by type begins with a name of its own."""
    for board in BOARDS:
        yield from _walk({**board, "panels": [], "templating": {}}, "dashboard", {"dashboard.templating"})
        for variable in board["templating"]["list"]:
            yield from _walk(variable, f"variable.{variable['type']}")
        for panel in board["panels"]:
            yield from _panel(panel)


def _panel(panel: Model) -> Iterator[tuple[str, Any]]:
    kind, fields = panel["type"], panel["fieldConfig"]
    inside = {"panel.targets[]", "panel.transformations[]", "panel.fieldConfig", "panel.options"}
    yield from _walk(panel, "panel", inside)
    yield from _walk(panel["options"], f"options.{kind}")
    yield from _walk(fields["defaults"], "defaults", {"defaults.custom"})
    if "custom" in fields["defaults"]:
        yield from _walk(fields["defaults"]["custom"], f"custom.{kind}")
    for target in panel["targets"]:
        yield from _walk(target, f"target.{target['datasource']['type']}")
    for each in panel["transformations"]:
        yield from _walk(each, f"transformation.{each['id']}")
    for override in fields["overrides"]:
        yield from _walk(override["matcher"], "matcher")
        for each in override["properties"]:
            yield from _walk(each, f"property.{each['id']}")


def _walk(value: Any, path: str, skip: frozenset[str] | set[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    if path in skip:
        return
    yield path, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{'*' if MAPS.search(path) else name}", skip)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, f"{path}[]", skip)
