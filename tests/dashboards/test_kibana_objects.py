"""The saved objects for Kibana: what Kibana defines, in the shape of what it exports, with stable ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards.kibana.saved_objects import ndjson, saved_objects
from dashboards.panels import DASHBOARDS, Site, placed
from dashboards.panels.query import Documents, Top
from dashboards.panels.site import field_types
from pipelines.contracts.records.severity import severity_of
from tests.dashboards.kibana_definitions import DashboardObject, DataView

SITE = Site("plant.novelties", ("v1", "v2"), "plant.incidents", changes="plant.changes")
LINES = ndjson(saved_objects(SITE)).splitlines()
OBJECTS = [json.loads(line) for line in LINES]
BOARDS = [each for each in OBJECTS if each["type"] == "dashboard"]
TEXTS = {"fieldAttrs", "fieldFormatMap", "fields", "runtimeFieldMap", "sourceFilters", "optionsJSON", "panelsJSON",
         "searchSourceJSON", "ignoreParentSettingsJSON"}  # fmt: skip
MAPS = re.compile(r"(layers|columns|controlGroupInput\.panelsJSON|fieldFormatMap)$")
NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "list", dict: "object", type(None): "null"}

Found = list[tuple[str, Any]]


@pytest.mark.parametrize("saved", OBJECTS, ids=lambda each: each["attributes"]["title"] + each["type"])
def test_every_object_is_what_kibana_defines_and_all_its_references_are_there(saved: dict[str, Any]) -> None:
    (DataView if saved["type"] == "index-pattern" else DashboardObject).model_validate(saved)
    known = {(each["type"], each["id"]) for each in OBJECTS}
    assert {(each["type"], each["id"]) for each in saved["references"]} <= known


def test_every_key_has_been_seen_with_this_type_in_what_kibana_exports() -> None:
    types, _ = exported()
    strange = [(path, NAMES[type(value)]) for path, value in found() if NAMES[type(value)] not in types.get(path, ())]
    assert strange == []


def test_no_key_is_missing_that_all_exports_have() -> None:
    _, always = exported()
    missing = set()
    for path, value in found():
        if isinstance(value, dict) and not MAPS.search(path):
            wanted = {each.rsplit(".", 1)[1] for each in always if each.rsplit(".", 1)[0] == path}
            missing |= {f"{path}.{name}" for name in wanted - value.keys()}
    assert missing == set()


def test_ids_stay_and_differ_between_spaces_and_namespaces() -> None:
    again = ndjson(saved_objects(SITE))
    assert again.splitlines() == LINES
    ids = [
        {each["id"] for each in saved_objects(Site(alias), space)}
        for alias, space in (("novelties", "default"), ("novelties", "ops"), ("plant.novelties", "default"))
    ]
    assert len(set.union(*ids)) == sum(map(len, ids)) == 3 * len(OBJECTS)


def test_data_views_name_the_indices_of_the_namespace_and_their_time() -> None:
    found = [each["attributes"] for each in OBJECTS if each["type"] == "index-pattern"]
    views = {each["title"]: each for each in found}
    times = sorted((each["title"], each["timeFieldName"]) for each in found)
    assert times == [
        ("plant.changes", "@timestamp"), ("plant.incidents", "@timestamp"),
        ("plant.novelties", "@timestamp"), ("plant.novelties", "event.ingested"), ("plant.novelties-*", "@timestamp"),
    ]  # fmt: skip
    formats = json.loads(views["plant.novelties-*"]["fieldFormatMap"])
    assert formats["since"]["id"] == formats["@timestamp"]["id"] == "date"
    assert formats["record_score"]["id"] == "number"


def test_a_probability_is_written_as_it_is() -> None:
    """Kibana's number format has no exponent: with three decimals each probability of a novelty is 0."""
    for view in (each["attributes"] for each in OBJECTS if each["type"] == "index-pattern"):
        formats = json.loads(view["fieldFormatMap"])
        assert formats.get("probability", {"id": "string"})["id"] == "string"
        assert "probability" in formats or view["title"] in ("plant.incidents", "plant.changes")


def test_a_heat_map_has_the_colour_of_a_score_s_severity() -> None:
    """The bounds are those at which `severity_of` changes its word, found by asking it for each score."""
    scores = [score / 10 for score in range(1001)]
    begin = {severity_of(score): score for score in reversed(scores)}
    panels = [panel for board in BOARDS for panel in json.loads(board["attributes"]["panelsJSON"])]
    lens = [each["embeddableConfig"]["attributes"] for each in panels if each["type"] == "lens"]
    maps = [each["state"]["visualization"] for each in lens if each["visualizationType"] == "lnsHeatmap"]
    assert len(maps) == 4
    for drawn in maps:
        palette = drawn["palette"]
        params = palette["params"]
        assert palette["accessor"] == drawn["valueAccessor"]
        assert (palette["name"], params["name"], params["rangeType"]) == ("custom", "custom", "number")
        assert [each["stop"] for each in params["colorStops"]] == sorted(begin.values())
        assert [each["stop"] for each in params["stops"]] == [*sorted(begin.values())[1:], 100]
        colours = [each["color"] for each in params["stops"]]
        assert colours == [each["color"] for each in params["colorStops"]]
        assert _luminances(colours) == sorted(_luminances(colours), reverse=True), "the darker, the more unusual"


def _luminances(colours: list[str]) -> list[float]:
    """About how light colours are, from 0 to 255."""
    parts = [[int(each[at : at + 2], 16) for at in (1, 3, 5)] for each in colours]
    return [0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in parts]


def test_a_click_on_a_machine_of_the_overview_opens_the_machine_with_its_filter() -> None:
    overview = next(each for each in BOARDS if each["attributes"]["title"].endswith("Overview"))
    machine = next(each for each in BOARDS if each["attributes"]["title"].endswith("Machine"))
    panels = {each.get("title"): each for each in json.loads(overview["attributes"]["panelsJSON"])}
    (event,) = panels["Machines over time"]["embeddableConfig"]["enhancements"]["dynamicActions"]["events"]
    assert event["action"]["config"]["useCurrentFilters"] and event["triggers"] == ["FILTER_TRIGGER"]
    targets = {each["id"] for each in overview["references"] if event["eventId"] in each["name"]}
    assert targets == {machine["id"]}


@pytest.mark.parametrize(
    ("panel", "opened"),
    [
        ("Machines of open incidents", "Machine"),
        ("Affected machines", "Machine"),
        ("Affected metrics", "Series"),
    ],
)
def test_a_click_in_a_table_of_incidents_opens_the_machine_or_the_metric_and_keeps_the_time_only(
    panel: str, opened: str
) -> None:
    """A chosen severity would stay as a filter, and no novelty has a severity: all panels would be empty."""
    boards = {each["attributes"]["title"].split("] ")[1]: each for each in BOARDS}
    incidents = boards["Incidents"]
    panels = {each.get("title"): each for each in json.loads(incidents["attributes"]["panelsJSON"])}
    (event,) = panels[panel]["embeddableConfig"]["enhancements"]["dynamicActions"]["events"]
    config = {"useCurrentFilters": False, "useCurrentDateRange": True, "openInNewTab": False}
    assert event["action"]["config"] == config and event["triggers"] == ["FILTER_TRIGGER"]
    targets = {each["id"] for each in incidents["references"] if event["eventId"] in each["name"]}
    assert targets == {boards[opened]["id"]}
    (layer,) = panels[panel]["embeddableConfig"]["attributes"]["state"]["datasourceStates"]["formBased"][
        "layers"
    ].values()
    (clicked,) = (each["sourceField"] for each in layer["columns"].values() if each["isBucketed"])
    assert clicked == {"Machine": "host.name", "Series": "metric"}[opened]


def test_links_keep_what_is_chosen_where_the_other_dashboard_can_show_it() -> None:
    for board in BOARDS:
        links = json.loads(board["attributes"]["panelsJSON"])[0]["embeddableConfig"]["attributes"]["links"]
        kept = {each["label"] for each in links if each["options"]["useCurrentFilters"]}
        mine = board["attributes"]["title"].split("] ")[1]
        others = {each.title for each in DASHBOARDS} - {"Incidents", "Changes"}
        assert kept == ({mine} if mine in ("Incidents", "Changes") else others)


def test_each_dashboard_links_to_all() -> None:
    for board in BOARDS:
        links = json.loads(board["attributes"]["panelsJSON"])[0]["embeddableConfig"]["attributes"]["links"]
        targets = {each["name"].split(":")[1]: each["id"] for each in board["references"] if ":link_" in each["name"]}
        assert [targets[each["destinationRefName"]] for each in links] == [each["id"] for each in BOARDS]


def test_panels_do_not_overlap_and_fill_the_page() -> None:
    for dashboard in DASHBOARDS:
        cells: set[tuple[int, int]] = set()
        for panel, place in placed(dashboard):
            mine = {(place.x + dx, place.y + dy) for dx in range(place.width) for dy in range(place.height)}
            assert not mine & cells and place.x + place.width <= 48, (dashboard.id, panel.id)
            cells |= mine


def test_buckets_are_made_of_fields_that_elasticsearch_can_group_by() -> None:
    """It cannot group by text; a field that no document has would leave a panel empty for ever."""
    for panel in (panel for dashboard in DASHBOARDS for panel in dashboard.panels):
        types = field_types(panel.data)
        if isinstance(panel.query, Documents):
            assert set(panel.query.columns) <= set(types), panel.id
            continue
        grouped = {each.field for each in panel.query.buckets if isinstance(each, Top)}
        assert {types[field] for field in grouped} <= {"keyword"}, panel.id
        assert {each.field for each in panel.query.measures if each.field} <= set(types), panel.id


def test_every_panel_says_what_it_shows() -> None:
    for dashboard in DASHBOARDS:
        assert dashboard.purpose.endswith("?")
        assert len({panel.id for panel in dashboard.panels}) == len(dashboard.panels)
        assert all(panel.help.endswith(".") for panel in dashboard.panels), dashboard.id


def exported() -> tuple[dict[str, set[str]], set[str]]:
    """Types by path, and the paths that every export has."""
    types: dict[str, set[str]] = {}
    always = set()
    for line in (Path(__file__).parent / "kibana_shape.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            path, names = line.removeprefix("!").split(" ")
            types.setdefault(path, set()).update(names.split(","))
            always |= {path} if line.startswith("!") else set()
    return types, always


def found() -> Found:
    """All paths of our objects with their values; what is inside a panel begins with a name of its own."""
    paths: Found = []
    for each in OBJECTS:
        paths += _walk(each, each["type"])
        if each["type"] == "dashboard":
            for panel in json.loads(each["attributes"]["panelsJSON"]):
                paths += _inside(panel["type"], panel["embeddableConfig"]["attributes"])
    return paths


def _inside(kind: str, attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if kind != "lens":
        yield from _walk(attributes, kind)
        return
    state = attributes["state"]
    layers = state["datasourceStates"]["formBased"]["layers"]
    for layer in layers.values():
        for column in layer["columns"].values():
            yield from _walk(column, f"column.{column['operationType']}")
    yield from _walk(state["visualization"], f"visualization.{attributes['visualizationType']}")
    plain = {name: {**layer, "columns": {}} for name, layer in layers.items()}
    kept = {name: value for name, value in state.items() if name != "visualization"}
    yield from _walk({**attributes, "state": {**kept, "datasourceStates": {"formBased": {"layers": plain}}}}, "lens")


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if path.rsplit(".", 1)[-1] in TEXTS:
        value = json.loads(value)
    yield path, value
    if isinstance(value, dict) and not path.endswith("embeddableConfig.attributes"):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{'*' if MAPS.search(path) else name}")
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, f"{path}[]")
