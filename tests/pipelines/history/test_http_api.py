"""What servers answer that are busy, wrong, too talkative or want a login; on an API as it is documented."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.history import http_api
from pipelines.history.http_api import HttpApi
from pipelines.history.intake import Intake, StoppedError, TooMuchError
from pipelines.history.login import Login
from pipelines.history.prometheus import PrometheusHistory, external
from tests.pipelines.history.fake_api import Answer, FakeApi, serving
from tests.pipelines.history.samples import MINUTE, START, history, live, rows

GIVEN = history(START, 1, 2 * MINUTE)
CONFIGURED = load()
NOTHING = {"resultType": "matrix", "result": []}
END = START + 60 * MINUTE
LIVE = live(GIVEN, CONFIGURED)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "_FIRST_WAIT", 0.001)
    monkeypatch.setattr(http_api, "_LONGEST_WAIT", 0.01)


def imported(fake: FakeApi, login: Login | None = None, url: str = "", cuts: tuple[int, ...] = (START, END)) -> Any:
    intake = Intake(CONFIGURED)
    with serving(fake) as address, closing(HttpApi(url or address, login or Login(), Event(), print)) as api:
        source = PrometheusHistory(api, ["a"], None)
        return sorted(row for a, b in pairwise(cuts) for row in rows(source.read(a, b, intake)))


def refused(fake: FakeApi, login: Login | None = None) -> NewnormalError:
    with pytest.raises(NewnormalError) as caught:
        imported(fake, login)
    return caught.value


@settings(max_examples=8)
@given(st.lists(st.integers(1, 60 * MINUTE - 1) | st.sampled_from([7_123, 127_123, 7_124]), max_size=6), st.booleans())
def test_samples_at_the_borders_of_slices_come_once_whether_or_not_ranges_hold_their_first_instant(
    cuts: list[int], closed: bool
) -> None:
    borders = (START, *sorted({START + cut for cut in cuts}), END)
    assert imported(FakeApi(GIVEN, closed), cuts=borders) == LIVE


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(status: int) -> None:
    busy: list[Answer] = [(status, b"busy", {"Retry-After": "0"}), (status, b"<html>", {})]
    fake = FakeApi(GIVEN, first=busy)
    assert imported(fake) == LIVE
    assert len(fake.asked) == 3


def test_a_server_that_stays_away_is_given_up_with_a_code_and_asked_for_some_minutes() -> None:
    with (
        closing(HttpApi("http://127.0.0.1:1", Login(), Event(), print)) as api,
        pytest.raises(NewnormalError) as caught,
    ):
        api.ask("/api/v1/query", [])
    assert caught.value.code == "IMPORT_UNREACHABLE"


def test_ctrl_c_ends_the_waiting_for_a_busy_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "_FIRST_WAIT", 60.0)
    monkeypatch.setattr(http_api, "_LONGEST_WAIT", 60.0)
    stop = Event()
    with serving(FakeApi(first=[(503, b"", {})])) as url, closing(HttpApi(url, Login(), stop, print)) as api:
        Timer(0.1, stop.set).start()
        with pytest.raises(StoppedError):
            api.ask("/api/v1/query", [])


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((400, {"status": "error", "errorType": "bad_data", "error": "parse error"}, {}), "IMPORT_REFUSED"),
        ((404, b"<html>", {}), "IMPORT_ANSWER"),
        ((200, b"<html>", {}), "IMPORT_ANSWER"),
        ((200, {"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}, {}), "IMPORT_ANSWER"),
        *(
            ((200, {"status": "success", "data": {"resultType": "matrix", "result": [series]}}, {}), "IMPORT_ANSWER")
            for series in (1, {"values": []}, {"metric": {"a": 1}, "values": [[1e9, "1"]]}, {"metric": {}, "values": 5},
                           {"metric": {}, "values": [["now", "1"]]}, {"metric": {}, "values": [[START / 1000, "x"]]},
                           {"metric": {}, "histograms": [[START / 1000, {"count": "1"}]]})
        ),
        ((200, {"status": "success", "isPartial": True, "data": NOTHING}, {}), "IMPORT_REFUSED"),
        ((302, b"", {"Location": "http://elsewhere/"}), "IMPORT_ANSWER"),
        ((403, b"no", {}), "IMPORT_LOGIN"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_has_a_code(answer: Answer, code: str) -> None:
    assert refused(FakeApi(first=[answer])).code == code


@pytest.mark.parametrize(
    "why",
    [
        "query processing would load too many samples into memory in query execution",
        "the query time range exceeds the limit (query length: 721h, limit: 720h)",
        "query timed out in expression evaluation",
        "the query exceeded the maximum number of chunks (limit: 2000000 chunks)",
    ],
)
def test_what_a_server_refuses_as_too_much_is_asked_for_in_shorter_slices(why: str) -> None:
    answer = (422, {"status": "error", "errorType": "execution", "error": why}, {})
    with pytest.raises(TooMuchError):
        imported(FakeApi(first=[answer]))


def test_an_answer_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "MOST_BYTES", 1_000)
    with pytest.raises(TooMuchError):
        imported(FakeApi(GIVEN))


def test_token_password_and_headers_come_from_files_and_stand_in_no_message(tmp_path: Path) -> None:
    for name in ("token", "password", "tenant"):
        (tmp_path / name).write_text(f"{name}-s3cret\n")
    headers = ("X-Scope-OrgID: team", f"X-Key: @{tmp_path / 'tenant'}")
    login = Login(token_file=str(tmp_path / "token"), headers=headers)
    wanted = {"Authorization": "Bearer token-s3cret", "X-Scope-OrgID": "team", "X-Key": "tenant-s3cret"}
    assert imported(FakeApi(GIVEN, wanted=wanted), login) == LIVE
    basic = Login(user="me", password_file=str(tmp_path / "password"))
    assert imported(FakeApi(GIVEN, wanted={"Authorization": "Basic bWU6cGFzc3dvcmQtczNjcmV0"}), basic)
    error = refused(FakeApi(first=[(403, b"no: token-s3cret, tenant-s3cret", {})]), login)
    assert "s3cret" not in str(error)


@pytest.mark.parametrize(
    ("login", "code"),
    [
        (Login(user="me"), "IMPORT_OPTION"),
        (Login(headers=("no colon",)), "IMPORT_OPTION"),
        (Login(headers=("X-A: a\nb",)), "IMPORT_OPTION"),
        (Login(token_file="/nowhere"), "LOGIN_FILE"),
        (Login(ca_file="/nowhere"), "LOGIN_FILE"),
        (Login(certificate_file="/nowhere"), "IMPORT_OPTION"),
    ],
)
def test_a_wrong_login_is_refused_before_anything_is_asked(login: Login, code: str) -> None:
    fake = FakeApi()
    assert refused(fake, login).code == code
    assert not fake.asked


@pytest.mark.parametrize("url", ["", "prometheus:9090", "ftp://a", "http://a/?x=1", "http://me:word@"])
def test_a_wrong_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(NewnormalError, match="IMPORT_OPTION") as caught:
        HttpApi(url, Login(), Event(), print)
    assert "word" not in str(caught.value)


def test_labels_that_prometheus_adds_in_remote_write_are_added_here() -> None:
    added = external(["cluster=eu", "job=other"])
    with serving(FakeApi(GIVEN)) as url, closing(HttpApi(url, Login(), Event(), print)) as api:
        found = rows(PrometheusHistory(api, ["a"], None, added).read(START, END, Intake(CONFIGURED)))
    told = {
        (("__name__", dict(k)["__name__"]), *sorted({"cluster": "eu", **dict(k[1:])}.items())): v
        for k, v in GIVEN.items()
    }
    assert found == live(told, CONFIGURED)
    with pytest.raises(NewnormalError, match="IMPORT_OPTION"):
        external(["=x"])
