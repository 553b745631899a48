"""The ACLs of a process: what it does beside its jobs needs rights, too."""

from __future__ import annotations

import pytest

from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.contracts.version_names import VersionNames
from pipelines.query.view.detector_topics import TOPICS
from pipelines.runtime.acls import FOLLOWED, Acl, needed, of_job, of_proofs


def _read(*names: str) -> set[Acl]:
    return {Acl("topic", f"a.{name}", "Read") for name in names}


@pytest.mark.parametrize(("jobs", "embedded", "follows"), [
    (["detector", "sink"], True, True), (["detector"], False, False), (["extractor"], True, False),
])  # fmt: skip
def test_the_process_with_the_detector_may_read_what_its_console_follows(
    jobs: list[str], embedded: bool, follows: bool
) -> None:
    settings = load(namespace="a.", **{"view.embedded": embedded})
    found = set(needed(settings, jobs))
    assert (_read("detector.state", "features", "novelties") <= found) is follows
    assert (Acl("group", "newnormal.", "Read", prefix=True) in found) is follows


def test_a_start_may_note_its_settings_among_the_versions() -> None:
    found = needed(load(namespace="a."), ["normalizer"])
    assert {each.operation for each in found if each.name == "a.newnormal.versions"} >= {"Read", "Write"}


def test_the_process_that_reads_what_agents_send_may_say_that_nothing_arrives() -> None:
    found = needed(load(namespace="a."), ["normalizer"])
    assert {each.operation for each in found if each.name == "a.silences"} >= {"Read", "Write"}


def test_the_sink_reads_changes_and_writes_none_as_it_sends_no_heartbeats() -> None:
    found = {each.operation for each in needed(load(namespace="a."), ["sink"]) if each.name == "a.changes"}
    assert "Read" in found and "Write" not in found


def test_the_rights_are_those_of_the_topics_that_a_view_reads() -> None:
    assert FOLLOWED == TOPICS


def test_proofs_may_do_what_the_jobs_of_such_a_version_do_and_remove_all_that_they_write() -> None:
    settings = load(namespace="a.")
    mine = settings.of(VersionNames("proof0123456789ab", {topics.TELEMETRY: "v1", topics.LOGS: "v1"}))
    jobs = ("extractor", "templates", "detector", "log_detector", "incidents")
    wanted = {acl for name in jobs for acl in of_job(name, mine)} | {Acl("group", f"{mine.owner}any", "Delete")}
    written = {acl.name for acl in wanted if acl.operation == "Write" and "-proof" in acl.name}
    wanted |= {Acl("topic", name, does) for name in written for does in ("Create", "Delete")}
    given = of_proofs(settings)

    def may(wish: Acl) -> bool:
        return any(
            (acl.resource, acl.operation) == (wish.resource, wish.operation)
            and (wish.name.startswith(acl.name) if acl.prefix else wish.name == acl.name)
            for acl in given
        )

    assert len(written) == 12
    assert [acl for acl in wanted if not may(acl)] == []
    assert not may(Acl("topic", "a.novelties", "Write"))
    assert not may(Acl("topic", "a.novelties-v2", "Delete"))
