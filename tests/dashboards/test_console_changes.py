"""The changes that the console draws, asked of a real Elasticsearch, and matched by other means."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Store, create_app
from dashboards.console.change_store import MOST
from deploy.embedded.endpoints import Endpoints
from pipelines.contracts.records import Change
from tests.dashboards.console_documents import END, WINDOW, stored_site

POD, NODE = "shop/cart-7d4b9c6f5-x2x7p", "node-9"
GLOBS = (
    ["shop/cart-*"], ["shop/cart", "shop/cart-*"], [POD], ["*"], ["*-x2x7p"], ["shop/c?rt-*"],
    ["shop/cart-7d4b9c6f5-x2x7?"],
    ["shop/carts-*"], ["shop/car"], [f"{POD}*"], [f"{POD}x*"], ["web-?", NODE], ["web-*", "*/cart-*-b2b7p"], [],
    ["s**p"], ["SHOP/*"], ["node-*"], ["[s]hop/*"],
)  # fmt: skip
HOUR = 3_600_000
CHANGES = [
    Change(id=f"c{i}", time=END - i * WINDOW, kind="deployment", message=f"release {i}", machines=globs)
    for i, globs in enumerate(GLOBS)
]
LONG = Change(id="long", time=END - 9 * HOUR, end=END - WINDOW, message="kernel", machines=[POD], by="eva")
PAST = Change(id="past", time=END - 9 * HOUR, end=END - 8 * HOUR, message="kernel", machines=[POD])
MANY = [
    Change(id=f"m{i}", time=END - 30 * HOUR - i * 1_000, message="flag", machines=["many-*"]) for i in range(MOST + 9)
]

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def store(endpoints: Endpoints) -> Iterator[Store]:
    with stored_site(endpoints.elasticsearch_url, [], [], [*CHANGES, LONG, PAST, *MANY]) as found:
        yield found


def concerns(globs: list[str], machine: str) -> bool:
    """By the standard library's globs, in which only a bracket means something else than here."""
    return not globs or any(fnmatchcase(machine, glob.replace("[", "[[]")) for glob in globs)


@pytest.mark.parametrize("machines", [[POD], [NODE], [POD, NODE], ["web-1"], ["db"], ["shop/cart"]])
def test_what_was_done_on_a_machine_and_on_the_whole_site_is_found_by_name_and_by_glob(
    store: Store, machines: list[str]
) -> None:
    found = store.changes.on(machines, END - HOUR, END)
    wanted = [each.id for each in CHANGES if any(concerns(each.machines, name) for name in machines)]
    assert [each["_id"] for each in found if each["_id"].startswith("c")] == wanted
    assert ("long" in {each["_id"] for each in found}) == (POD in machines), "it lasted until into that time"
    assert "past" not in {each["_id"] for each in found}


def test_a_change_says_what_it_was_and_only_those_of_the_time_are_told_the_last_ones_first(store: Store) -> None:
    (found,) = [each for each in store.changes.on([POD], END - HOUR, END) if each["_id"] == "long"]
    assert found == {
        "_id": "long", "since": LONG.time, "end": LONG.end, "kind": "other", "message": "kernel", "machines": [POD],
        "by": "eva", "source": "", "url": "",
    }  # fmt: skip
    assert store.changes.on([POD], END + 1, END + HOUR) == []
    many = store.changes.on(["many-1"], END - 40 * HOUR, END - 29 * HOUR)
    assert [each["_id"] for each in many] == [f"m{i}" for i in range(MOST)]


class Topics:
    """Places of machines as Kafka has them."""

    def in_force(self) -> dict[str, Any]:
        parents = {POD: NODE, NODE: "rack-1", "rack-1": POD}
        placements = [{"host.name": name, "parent": parent} for name, parent in parents.items()]
        return {"placements": placements, "rules": [], "labels": []}


def test_the_page_asks_for_a_machine_and_what_it_runs_on(store: Store) -> None:
    page = TestClient(create_app(store, actions=Topics()), base_url="http://localhost")  # type: ignore[arg-type]
    asked = {"machine": POD, "start": END - HOUR, "end": END}
    found = page.get("/api/changes", params=asked).json()
    assert found["above"] == [NODE, "rack-1"], "a circle of places ends"
    assert "c16" in {each["_id"] for each in found["changes"]}, "it was done on the node"
    without = TestClient(create_app(store), base_url="http://localhost").get("/api/changes", params=asked).json()
    assert "c16" not in {each["_id"] for each in without["changes"]} and without["above"] == []
    assert page.get("/api/changes", params={"machine": POD, "start": 0}).status_code == 422
