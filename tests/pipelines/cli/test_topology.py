"""`newnormal topology` on a real topic: what people see, what is written, and what the incidents job makes of it."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka import content
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import InferredPlacement, Placement
from pipelines.jobs.incidents.topology import Topology
from pipelines.jobs.operator_messages import accepted
from pipelines.query.topology import NOWHERE, Place, from_csv
from tests.pipelines.cli.conftest import Run
from tests.pipelines.incidents.cases import MINUTE, STEP, T0, Feed, outage


@pytest.fixture
def namespace(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> str:
    """A namespace of the test's own, without topics."""
    space = f"top{uuid.uuid4().hex[:8]}."
    monkeypatch.setenv("NEWNORMAL_NAMESPACE", space)
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", endpoints.bootstrap)
    return space


def listed(run: Run) -> dict[str, str]:
    lines = run("topology", "list", "--json")[1].splitlines()
    return {each["entity"]: each["parent"] for each in map(json.loads, lines)}


@pytest.mark.servers
@pytest.mark.timeout(120)
def test_machines_are_placed_moved_listed_and_removed(namespace: str, run: Run) -> None:
    assert run("topology", "list")[:2] == (0, "no machine has a place; `newnormal topology place` gives it one\n")
    code, said, _ = run("topology", "place", "vm-1", "vm-2", "--on", "host-1")
    assert (code, said) == (0, "vm-1 runs on host-1\nvm-2 runs on host-1\n")
    assert run("topology", "place", "vm-2", "--on", "host-2")[1] == "vm-2 runs on host-2\n"
    assert run("topology", "place", "vm-2", "--on", "host-2")[1] == "nothing changed: that was known already\n"
    run("topology", "place", "host-1", "host-2", "--on", "switch")
    assert listed(run) == {"vm-1": "host-1", "vm-2": "host-2", "host-1": "switch", "host-2": "switch"}
    assert run("topology", "remove", "vm-2")[1] == "vm-2 has no place\n"
    assert listed(run) == {"vm-1": "host-1", "host-1": "switch", "host-2": "switch"}
    shown = run("topology", "list")[1]
    assert "host-1" in shown and "vm-2" not in shown and max(map(len, shown.splitlines())) <= 80


@pytest.mark.servers
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("command", "code", "told"), [
    (["remove", "vm-1", "vm-9"], "TOPOLOGY_UNKNOWN", "vm-9: no such machine has a place"),
    (["place", "switch", "--on", "vm-1"], "PLACEMENT_INVALID", "switch on vm-1 on host-1 on switch"),
    (["place", "vm-9", "--on", "vm-9"], "PLACEMENT_INVALID", "vm-9 on vm-9"),
    (["place", "vm-*", "--on", "host-1"], "PLACEMENT_INVALID", "vm-* is a pattern"),
    (["place", "vm-9", "--on", ""], "PLACEMENT_INVALID", "parent"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    command: list[str], code: str, told: str, namespace: str, run: Run, endpoints: Endpoints
) -> None:
    run("topology", "place", "vm-1", "--on", "host-1")
    run("topology", "place", "host-1", "--on", "switch")
    before = len(content.values(endpoints.bootstrap, namespace + topics.TOPOLOGY))
    ended, _, said = run("topology", *command)
    assert ended == 2 and code in said and told in " ".join(said.split())
    assert len(content.values(endpoints.bootstrap, namespace + topics.TOPOLOGY)) == before


@pytest.mark.servers
@pytest.mark.timeout(120)
def test_what_else_a_machine_depends_on_is_said_without_forgetting_that_it_moved(
    namespace: str, run: Run, endpoints: Endpoints, tmp_path: Path
) -> None:
    """A novelty on the host that it left, at the time of the move, belongs to it also after the calls were imported."""
    run("topology", "place", "vm-1", "--on", "host-1")
    run("topology", "place", "vm-1", "--on", "host-2")
    (*_, move) = [Placement.from_json(message.value()) for message in _messages(endpoints, namespace)]
    run("topology", "place", "vm-1", "--needs", "db")
    file = tmp_path / "calls.csv"
    file.write_text("machine,depends_on\nvm-1,db\nvm-1,cache\n")
    run("topology", "import", str(file))
    last = [Placement.from_json(message.value()) for message in _messages(endpoints, namespace)][-1]
    topology = Topology({"vm-1": last})
    assert last.depends_on == ["cache", "db"]
    assert last.time > move.time
    assert [topology.parent("vm-1", move.time + shift) for shift in (-1, 0)] == ["host-1", "host-2"]
    (went,) = topology.moves(move.time)["vm-1"]
    assert (went.moved_from, went.parent, went.moved_at) == ("host-1", "host-2", move.time)
    assert topology.moves(move.time + 1) == {}
    run("topology", "place", "vm-1", "--on", "host-3")
    again = [Placement.from_json(message.value()) for message in _messages(endpoints, namespace)][-1]
    assert (again.moved_from, again.moved, again.depends_on) == ("host-2", None, ["cache", "db"]), "it moved again"


@pytest.mark.servers
@pytest.mark.timeout(120)
def test_a_file_is_imported_and_a_second_time_only_its_changes_are(
    namespace: str, run: Run, endpoints: Endpoints, tmp_path: Path
) -> None:
    file = tmp_path / "site.csv"
    rows = "".join(f"rack {n},vm-{n},host-{n % 7}\r\n" for n in range(2_000))
    file.write_text("\ufeffplace,machine,parent\r\n" + rows, newline="")
    assert run("topology", "import", str(file))[:2] == (0, "2000 machines placed, 0 removed, 0 as before\n")
    assert run("topology", "import", str(file))[1] == "0 machines placed, 0 removed, 2000 as before\n"
    file.write_text("machine,parent\nvm-0,host-9\nvm-1,\nvm-2,host-2\n")
    assert run("topology", "import", str(file))[1] == "1 machines placed, 1 removed, 1 as before\n"
    expected = {f"vm-{n}": f"host-{n % 7}" for n in range(2_000)} | {"vm-0": "host-9"}
    del expected["vm-1"]
    assert listed(run) == expected
    found = [(message.key(), json.loads(message.value())) for message in _messages(endpoints, namespace)]
    assert len(found) == 2_002 and all(key.decode() == record["host.name"] for key, record in found)


@pytest.mark.servers
@pytest.mark.timeout(120)
@pytest.mark.parametrize("known", [False, True])
def test_the_host_of_an_outage_is_named_first_only_if_the_topology_is_known(
    known: bool, namespace: str, run: Run, endpoints: Endpoints
) -> None:
    feed, vms = Feed(), [f"vm-{n}" for n in range(3)]
    if known:
        run("topology", "place", *vms, "--on", "z-host")
        for message in _messages(endpoints, namespace):
            feed._take([feed._row(message.value(), topics.TOPOLOGY, 0)])
    feed.send(outage([*vms, "z-host"], 0, 5 * MINUTE, metrics=3), STEP)
    (only,) = feed.standing
    assert (only.candidates[0].entity == "z-host") == known


def _messages(endpoints: Endpoints, namespace: str) -> list:  # type: ignore[type-arg]
    return list(content.content(endpoints.bootstrap, namespace + topics.TOPOLOGY))


@pytest.mark.parametrize(("text", "told"), [
    (b"vm,host\na,b\n", "no column machine"),
    (b"machine\na\n", "no column parent"),
    (b"machine,needs\na,b\n", "no column parent"),
    (b"", "no column machine"),
    (b"machine,parent\na,b\n ,b\n", "line 3"),
    (b"machine,parent\na,b\na,c\n", "another parent of a"),
    (b"machine,parent\na,\"b\n", "unexpected end of data"),
    (b"machine,parent\n\xff,b\n", "can't decode"),
    (None, "No such file"),
])  # fmt: skip
def test_a_file_that_is_wrong_is_refused_as_a_whole(text: bytes | None, told: str, tmp_path: Path) -> None:
    file = tmp_path / "site.csv"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(NewnormalError) as caught:
        from_csv(file)
    assert caught.value.code == "TOPOLOGY_UNREADABLE" and told in str(caught.value)


def test_spaces_around_a_name_do_not_count_and_an_absent_parent_is_none(tmp_path: Path) -> None:
    file = tmp_path / "site.csv"
    file.write_text("machine,parent\n a , b \nc\nd,\n")
    assert from_csv(file) == {"a": Place(("b",)), "c": Place(()), "d": Place(())}


def test_a_file_says_of_a_service_all_that_it_calls_one_a_line(tmp_path: Path) -> None:
    file = tmp_path / "calls.csv"
    file.write_text("machine,depends_on\nweb,cart\nweb,payment\nweb,cart\ncart,\n")
    assert from_csv(file) == {"web": Place(depends_on=("cart", "payment")), "cart": Place(depends_on=())}


def test_what_is_not_said_of_a_machine_stays_as_it_was() -> None:
    known = Placement(entity="web", parent="host", depends_on=["cart"], time=T0)
    assert Place(("other",)).after(known) == ("other", ("cart",))
    assert Place(depends_on=("db", "db")).after(known) == ("host", ("db",))
    assert NOWHERE.after(known) == (None, ())


@pytest.mark.servers
@pytest.mark.timeout(120)
def test_a_call_graph_is_stated_beside_hosts_also_with_a_circle(namespace: str, run: Run, tmp_path: Path) -> None:
    assert run("topology", "place", "web", "--on", "host-1")[1] == "web runs on host-1\n"
    said = run("topology", "place", "web", "--needs", "cart", "--needs", "payment")[1]
    assert said == "web runs on host-1 and depends on cart, payment\n", "what it runs on stays"
    file = tmp_path / "calls.csv"
    file.write_text("machine,depends_on\ncart,payment\npayment,cart\nweb,cart\nweb,payment\n")
    assert run("topology", "import", str(file))[1] == "2 machines placed, 0 removed, 1 as before\n"
    code, _, told = run("topology", "place", "cart", "--needs", "cart")
    assert code == 2 and "cart would depend on itself" in " ".join(told.split())
    assert run("topology", "remove", "web")[1] == "web has no place\n"
    lines = [json.loads(line) for line in run("topology", "list", "--json")[1].splitlines()]
    assert {each["entity"]: each["depends_on"] for each in lines} == {"cart": ["payment"], "payment": ["cart"]}


def test_a_message_of_an_earlier_version_with_one_parent_is_read_as_before() -> None:
    text = b'{"@timestamp":1767571200000,"host.name":"vm-1","parent":"host-1","moved_from":"host-2"}'
    assert accepted(Placement, text).above == ("host-1",)


@pytest.mark.parametrize("wrong", ['"cart"', '[""]', "[1]", str([f"s-{n}" for n in range(501)]).replace("'", '"')])
def test_what_is_no_list_of_at_most_500_names_is_refused(wrong: str) -> None:
    text = f'{{"@timestamp":1767571200000,"host.name":"web","depends_on":{wrong}}}'
    with pytest.raises(NewnormalError) as caught:
        accepted(Placement, text.encode())
    assert caught.value.code == "PLACEMENT_INVALID"


@pytest.mark.servers
@pytest.mark.timeout(120)
def test_the_list_says_what_people_say_and_what_telemetry_tells(namespace: str, run: Run, endpoints: Endpoints) -> None:
    ensure_topics(endpoints.bootstrap, {namespace + topics.PLACES: topics.config(topics.PLACES)}, 1)
    told = [
        InferredPlacement(entity="shop/cart-0", parent="n1", workload="shop/cart", time=T0),
        InferredPlacement(entity="shop/cart-1", parent="n2", time=T0),
        InferredPlacement(entity="shop/cart-1", time=T0 + 1),
    ]
    producer = Producer({"bootstrap.servers": endpoints.bootstrap})
    for each in told:
        producer.produce(namespace + topics.PLACES, each.to_json(), each.entity.encode())
    assert not producer.flush(30)
    run("topology", "place", "vm-1", "--on", "host-1")
    lines = [json.loads(line) for line in run("topology", "list", "--json")[1].splitlines()]
    assert [(each["entity"], each["parent"], each["source"]) for each in lines] == [
        ("vm-1", "host-1", "a person"), ("shop/cart-0", "n1", "telemetry"),
    ]  # fmt: skip
    shown = run("topology", "list")[1]
    assert "shop/cart" in shown and "telemetry" in shown and "cart-1" not in shown
