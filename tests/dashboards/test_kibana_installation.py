"""`newnormal dashboards install` and `check --kibana`, against a server that answers as Kibana's documentation says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli.guard import guarded
from pipelines.cli.main import app
from tests.dashboards.fake_kibana import KEY, Held, kibana

OVERVIEW = "[novelties] Overview"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Held]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KIBANA_CREDENTIALS", KEY.removeprefix("ApiKey "))
    monkeypatch.setenv("COLUMNS", "200")
    with kibana(Held()) as server:
        yield server


def run(held: Held, what: str, *more: str) -> int:
    return guarded(app, ["dashboards", what, "--kibana", held.url, *more])


def boards(held: Held, space: str = "default") -> dict[str, dict[str, Any]]:
    """The dashboards of a space by title."""
    return {
        each["attributes"]["title"]: each
        for (where, kind, _), each in held.objects.items()
        if (where, kind) == (space, "dashboard")
    }


def test_a_second_installation_changes_nothing(held: Held) -> None:
    assert run(held, "check") == 1 and not held.objects
    assert run(held, "install") == 0
    first, imports = json.dumps(sorted(held.objects.items())), held.imports
    assert {"[novelties] Overview", "[novelties] Series"} <= set(boards(held))
    assert run(held, "check") == 0
    assert run(held, "install") == 0
    assert (json.dumps(sorted(held.objects.items())), held.imports) == (first, imports)


def test_an_older_dashboard_of_ours_is_replaced_and_the_others_are_not_touched(
    held: Held, capsys: pytest.CaptureFixture[str]
) -> None:
    run(held, "install", "--versions", "v1")
    before = {title: each["version"] for title, each in boards(held).items()}
    capsys.readouterr()
    assert run(held, "check") == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "Version comparison" in line)
    assert "would be replaced" in line and "0.1.0" in line
    run(held, "install")
    after = {title: each["version"] for title, each in boards(held).items()}
    assert [title for title in after if after[title] != before[title]] == ["[novelties] Version comparison"]
    assert run(held, "check") == 0


def test_a_dashboard_that_a_user_changed_stays_until_the_user_says_otherwise(
    held: Held, capsys: pytest.CaptureFixture[str]
) -> None:
    run(held, "install")
    mine = boards(held)[OVERVIEW]
    mine["attributes"]["timeFrom"] = "now-7d"
    capsys.readouterr()
    assert run(held, "check") == 1
    assert "changed by somebody: stays" in capsys.readouterr().out
    run(held, "install")
    assert boards(held)[OVERVIEW]["attributes"]["timeFrom"] == "now-7d"
    run(held, "install", "--replace")
    assert boards(held)[OVERVIEW]["attributes"]["timeFrom"] == "now-6h"
    assert run(held, "check") == 0


def test_a_copy_and_formats_of_a_user_are_never_touched(held: Held) -> None:
    run(held, "install")
    copy = json.loads(json.dumps(boards(held)[OVERVIEW])) | {"id": "my-own"}
    held.objects["default", "dashboard", "my-own"] = copy
    view = next(each for (_, kind, _), each in held.objects.items() if kind == "index-pattern")
    view["attributes"]["runtimeFieldMap"] = '{"mine": {"type": "long"}}'
    for more in ([], ["--replace"]):
        assert run(held, "install", *more) == 0
    assert held.objects["default", "dashboard", "my-own"] == copy
    assert view["attributes"]["runtimeFieldMap"] == '{"mine": {"type": "long"}}'


def test_spaces_and_namespaces_have_dashboards_of_their_own(held: Held) -> None:
    run(held, "install")
    run(held, "install", "--space", "ops")
    run(held, "install", "--space", "ops", "--namespace", "plant.")
    assert len(boards(held)) == 8 and len(boards(held, "ops")) == 16
    ids = [identity for _, _, identity in held.objects]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("change", "more", "code", "named"),
    [
        ({"version": "8.11.0"}, [], "DASHBOARD_SERVER_VERSION", "8.11.0"),
        ({"version": "strange"}, [], "DASHBOARD_SERVER_REFUSED", "no Kibana"),
        ({}, ["--space", "nowhere"], "DASHBOARD_SPACE_UNKNOWN", "nowhere"),
        ({}, ["--space", "../x"], "DASHBOARD_SPACE_UNKNOWN", "--space"),
        ({"writable": False}, [], "DASHBOARD_SERVER_FORBIDDEN", "bulk_create"),
        ({}, ["--credentials", "wrong"], "DASHBOARD_SERVER_FORBIDDEN", "401"),
        ({}, ["--credentials", "absent"], "DASHBOARD_CREDENTIALS_INVALID", "absent"),
    ],
)
def test_what_does_not_work_is_said(
    held: Held, change: dict[str, Any], more: list[str], code: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wrong").write_text("somebody:else\n")
    for name, value in change.items():
        setattr(held, name, value)
    assert run(held, "install", *more) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{code}: ") and named in said
    assert "else" not in said and "c2VjcmV0" not in said
    assert not held.objects


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "kibana", "http://[", "ftp://127.0.0.1"])
def test_an_address_without_a_kibana_is_said(held: Held, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(app, ["dashboards", "install", "--kibana", url]) == 2
    assert capsys.readouterr().err.startswith("DASHBOARD_SERVER_UNREACHABLE: ")
