"""Each setting: a wrong value, from any source of settings, stops the start and is explained."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from engine.spec.errors import NewnormalError
from pipelines.cli import main
from pipelines.contracts.setting_errors import leaves, unknown_variables, variable
from pipelines.contracts.setting_types import accepted
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.chain import JOBS

ALL = dict(leaves(Settings))
TABLES = ("detector.bounds", "detector.family", "notify.channels", "notify.routes", "notify.runbooks", "spark.options")
"""Settings that are tables; in the environment they are JSON."""

NEVER_RIGHT = "\x07 nothing accepts this \x1b[31m"
TRAPS = {
    "detector.timezone": ["Mars/Base", "", "posix/UTC", "localtime", "../UTC", "x" * 5000],
    "watermark.earliest": ["gestern", "", "2026-13-01", "1700000000"],
    "watermark.idle_after": ["0s", "-1s"],
    "window.size": ["0s", "0.1ms", "9" * 400 + "d", "10", "11y"],
    "window.every": ["0s", "3s", "20s", "1ms"],
    "kafka.bootstrap": ["localhost", "localhost:", ":9092", "a:0", "a:65536", "a:1,", "http://a", "a b:1", "::1:9092"],
    "elasticsearch.url": ["localhost:9200", "ftp://a:1", "http://a", "http://a:x", "http://a:1?q", "http://a:70000"],
    "elasticsearch.index": ["a" * 200, "-a", "a/b", "A"],
    "embedded.address": ["a b", "", "localhost", "::1", "256.1.1.1"],
    "embedded.kafka_heap": ["0m", "512", "512mb", "99999999g", "64m"],
    "engine.driver_memory": ["2gb", "100m", "1t"],
    "engine.cores": [0, 1e9, "two", 1.5, True],
    "console.host": ["a b", "", "http://a", "256.1.1.1", "::zz"],
    "console.published": ["a b", "http://a", "256.1.1.1", "::zz"],
    "console.token": ["short", "with a space in it", "x" * 201, "\x07" * 20, "ä" * 20],
    "console.token_file": ["a\nb", " a"],
    "view.published": ["a b", "http://a", "256.1.1.1", "::zz"],
    "view.token": ["short", "with a space in it", "x" * 201, "\x07" * 20, "ä" * 20],
    "view.token_file": ["a\nb", " a"],
    "console.proxies": ["proxy.example", "127.0.0.1,", "10.0.0.1/8", "10.0.0.0/33"],
    "console.port": [-1, 65536, "http"],
    "gateway.host": ["a b", "", "http://a", "256.1.1.1"],
    "gateway.published": ["a b", "http://a"],
    "notify.published": ["a b", "http://a"],
    "notify.token": ["short", "with a space in it", "x" * 201, "ä" * 20],
    "gateway.token": ["short", "with a space in it", "x" * 201, "ä" * 20],
    "gateway.token_file": ["a\nb", " a"],
    "gateway.port": [-1, 65536, "http"],
    "gateway.max_body": [0, 15_000_001, "4m"],
    "gateway.max_decompressed": [0, 15_000_001],
    "gateway.max_in_flight": [0, 29_999_999],
    "gateway.rate": [-1, "fast"],
    "gateway.timeout": ["0s", "10", "-1s"],
    "namespace": ["a", ".", "A.", "a.b.", "x" * 100 + "."],
    "spark.master": ["local[2]", "spark://", "spark://a", "spark://a:7077,", "mesos://a:1", "k8s://http://a:1", "k8s://a"],
    "spark.checkpoints": ["s3a://bucket", "hdfs:///x", "/dev/null/x"],
    "spark.options": [{"executor.memory": "1g"}, {"spark.master": "yarn"}, {"spark.jars": "a.jar"}, "spark.ui.enabled"],
    "state_dir": ["s3a://bucket/x", "", "/dev/null", "/dev/null/state", "~nobody-of-that-name/x"],
    "detector.threshold": ["nan", -1, 101, "high"],
    "detector.emit": ["some", "", 1],
    "detector.context_before": [-1, 1.5, "many"],
    "detector.context_always": ["cpu", "/cpu", "a/", "a/cpu,", "a/cpu, b/cpu", "a/" + "x" * 600, "a/\n"],
    "detector.family": [{"": "count"}, {"?" * 20_000: "count"}, {"a": "poisson"}, "count", 3],
    "kafka.partitions": [0, 1025, 3],
    "notify.console": ["console.example.org", "https://", "https://a b", "ftp://a"],
    "notify.quiet": ["22-7", "24:00-07:00", "07:00-07:00", "22:00-07:00,", "22:00", "Mon", "mon-", "mon22:00-23:00"],
    "notify.matching": ["any", "", 1],
    "notify.dashboard": ["grafana", "ftp://a", "http://a b", "http://a/?m=$host", "http://a/$", "http://"],
    "notify.routes": [
        "pager", {"channels": ["a"]}, [{}], [{"channels": ["a"]}], [{"channels": [], "severity": "high"}],
        [{"channels": [], "times": "always"}], [{"channels": [], "timezone": "Mars/Base"}], [{"channels": ["A B"]}],
        [{"channels": [], "escalate": [{"after": "0s", "channels": []}]}], [{"channels": [], "remind": "0s"}],
        [{"channels": [], "machine": [""]}], [{"channels": [], "hosts": "a"}], [{"channels": [], "name": "a"}] * 2,
    ],
    "notify.runbooks": ["a", [{}], [{"url": "wiki"}], [{"url": "http://a/$host"}], [{"url": "http://a", "m": 1}]],
    "notify.channels": [
        "slack", {"a": "slack"}, {"a": {}}, {"a": {"kind": "pager"}}, {"a": {"kind": "slack"}},
        {"a b": {"kind": "slack", "url": "http://a"}}, {"a": {"kind": "slack", "url": "http://a:1", "url_file": "b"}},
        {"a": {"kind": "slack", "url": "hooks.example.org"}}, {"a": {"kind": "slack", "url": "http://a:99999"}},
        {"a": {"kind": "slack", "url": "http://a:1", "text": "$tile"}},
        {"a": {"kind": "email", "server": "a", "sender": "a@b", "recipients": ["a@b"]}},
        {"a": {"kind": "email", "server": "a:25", "sender": "a@b", "recipients": []}},
        {"a": {"kind": "email", "server": "a:25", "sender": "a@b\nBcc: c@d", "recipients": ["a@b"]}},
        {"a": {"kind": "email", "server": "a:25", "sender": "a@b", "recipients": ["a@b"], "user": "me"}},
        {"a": {"kind": "pagerduty"}}, {"a": {"kind": "opsgenie", "key_file": "k", "key_variable": "K"}},
        {"a": {"kind": "ntfy", "url": "https://ntfy.sh"}}, {"a": {"kind": "ntfy", "url": "http://a", "topic": "a/b"}},
        {"a": {"kind": "pagerduty", "key_file": "k", "url": "events.pagerduty.com"}}, {"a": {"kind": "teams"}},
    ],
}  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(name: str, error: NewnormalError) -> None:
    """What each refusal of a setting says."""
    assert error.code == "SETTING_INVALID"
    assert name in error.what
    assert accepted(ALL[name]) in error.accepted or name in error.where + error.accepted + error.what
    assert error.now == "nothing was started"


@pytest.mark.parametrize("name", ALL)
def test_a_value_that_nothing_accepts_is_refused_on_the_command_line(name: str) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{name: NEVER_RIGHT})
    said(name, caught.value)
    assert caught.value.accepted == accepted(ALL[name])
    assert caught.value.where == "command line"


@pytest.mark.parametrize("name", ALL)
def test_and_in_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = '{"a": "poisson"}' if name in TABLES else NEVER_RIGHT
    monkeypatch.setenv(variable(name), wrong)
    with pytest.raises(NewnormalError) as caught:
        load()
    said(name, caught.value)
    assert caught.value.accepted == accepted(ALL[name])
    assert caught.value.where == variable(name)


@pytest.mark.parametrize("name", ALL)
def test_and_in_the_file(name: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable(name), raising=False)
    table, _, leaf = name.rpartition(".")
    value = '"\\u0007 nothing accepts this \\u001b[31m"'
    (elsewhere / "newnormal.toml").write_text((f"[{table}]\n" if table else "") + f"{leaf} = {value}\n")
    with pytest.raises(NewnormalError) as caught:
        load()
    said(name, caught.value)
    assert caught.value.accepted == accepted(ALL[name])
    assert caught.value.where == "newnormal.toml"


@pytest.mark.parametrize("name", ALL)
def test_the_command_shows_code_name_and_what_is_accepted_and_no_stack_trace(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = '{"a": "poisson"}' if name in TABLES else NEVER_RIGHT
    monkeypatch.setenv(variable(name), wrong)
    monkeypatch.setattr(sys, "argv", ["newnormal", "services", "status"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    shown = capsys.readouterr().err
    assert ended.value.code == 2
    assert "SETTING_INVALID" in shown
    assert name in shown
    assert accepted(ALL[name]) in shown
    assert "Traceback" not in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in TRAPS.items() for value in values])
def test_a_value_that_looks_right_but_cannot_be_used_is_refused(name: str, value: object) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{name: value})
    said(name, caught.value)


ODD = st.one_of(
    st.text(max_size=20), st.integers(), st.floats(), st.booleans(), st.lists(st.text(max_size=3), max_size=2)
)


@pytest.mark.parametrize("name", ALL)
@given(value=ODD)
@examples(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_whatever_ends_otherwise_than_accepted_or_explained(name: str, value: object) -> None:
    with suppress(NewnormalError):
        load(**{name: value})


DURATIONS = st.builds("{}{}".format, st.integers(0, 400), st.sampled_from(["ms", "s", "m", "h", "d"]))
SOME = st.fixed_dictionaries(
    {},
    optional={
        "window.size": DURATIONS,
        "window.every": DURATIONS,
        "window.allowed_lateness": DURATIONS,
        "watermark.idle_after": DURATIONS,
        "watermark.out_of_orderness": DURATIONS,
        "watermark.max_ahead": DURATIONS,
        "engine.shards": st.integers(1, 8),
        "kafka.partitions": st.integers(1, 8),
        "detector.timezone": st.sampled_from(["UTC", "Asia/Kolkata", "Europe/Stockholm"]),
    },
)


@given(chosen=SOME)
@examples(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_accepted_can_be_made_into_jobs(chosen: dict[str, object]) -> None:
    """No setting that passes is found to be wrong later, when servers and Spark run already."""
    try:
        settings = load(**chosen)
    except NewnormalError:
        return
    for make in JOBS.values():
        make(settings)


def test_all_wrong_settings_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWNORMAL_KAFKA_BOOTSTRAP", "broker:9092")
    monkeypatch.setenv("NEWNORMAL_DETECTOR__THRESHOLD", "high")
    with pytest.raises(NewnormalError) as caught:
        load(**{"window.size": "soon"})
    for each in ("NEWNORMAL_KAFKA_BOOTSTRAP", "NEWNORMAL_KAFKA__BOOTSTRAP?", "detector.threshold = 'high'", "'soon'"):
        assert each in caught.value.what
    monkeypatch.delenv("NEWNORMAL_DETECTOR__THRESHOLD")
    with pytest.raises(NewnormalError) as caught:
        load(**{"kafka.partitions": 5, "engine.shards": 2})
    assert "NEWNORMAL_KAFKA_BOOTSTRAP" in caught.value.what and "no multiple of engine.shards" in caught.value.what


@pytest.mark.parametrize("name", ["packages", "python", "options"])
def test_a_setting_for_a_cluster_is_refused_where_there_is_none(name: str) -> None:
    given = {f"spark.{name}": {"spark.cores.max": "2"} if name == "options" else "a"}
    with pytest.raises(NewnormalError, match=f"spark.{name} = .*spark.master is empty"):
        load(**given)
    load(**given, **{"spark.master": "spark://a:7077"})


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("detector.treshold", "detector.threshold"),
        ("window.sise", "window.size"),
        ("threshold", "detector.threshold"),
        ("windows.size", "window.size"),
        ("kafka.bootstrap_servers", "kafka.bootstrap"),
        ("watermark.out_of_order", "watermark.out_of_orderness"),
        ("consle", "console"),
        ("name_space", "namespace"),
    ],
)
def test_an_unknown_setting_is_asked_about(wrong: str, right: str) -> None:
    with pytest.raises(NewnormalError, match=f"{wrong} = .*did you mean {right}\\?") as caught:
        load(**{wrong: 1})
    assert caught.value.code == "SETTING_INVALID"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("NEWNORMAL_NAMSPACE", "NEWNORMAL_NAMESPACE"),
        ("NEWNORMAL_KAFKA_BOOTSTRAP", "NEWNORMAL_KAFKA__BOOTSTRAP"),
        ("NEWNORMAL_DETECTR__THRESHOLD", "NEWNORMAL_DETECTOR__THRESHOLD"),
        ("NEWNORMAL_DETECTOR__TRESHOLD", "detector.threshold"),
    ],
)
def test_an_unknown_variable_is_asked_about(wrong: str, right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(wrong, "1")
    with pytest.raises(NewnormalError, match=f"did you mean {right}\\?"):
        load()


@pytest.mark.parametrize(
    "name",
    ["NEWNORMAL_SERVICE_HOST", "NEWNORMAL_PORT_8880_TCP_ADDR", "NEWNORMAL_KAFKA_SERVICE_PORT", "NEWNORMAL_DEBUG"],
)
def test_variables_of_kubernetes_and_our_own_switches_are_no_settings(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "10.0.0.1")
    assert load() == Settings()


def test_each_variable_that_code_tests_or_docs_name_is_known() -> None:
    root = Path(__file__).parents[3]
    files = [
        root / "README.md",
        *(
            f
            for d in ("docs", "engine", "pipelines", "datagen", "dashboards", "deploy", "tests")
            for f in (root / d).rglob("*")
        ),
    ]
    text = "".join(f.read_text(encoding="utf-8") for f in files if f.suffix in (".py", ".md") and f != Path(__file__))
    named = set(re.findall(r"NEWNORMAL_[A-Z][A-Z_]*[A-Z]", text))
    made_up = {"NEWNORMAL_KAFKA_BOOTSTRAP"}  # a wrong one, for a test
    assert unknown_variables(dict.fromkeys(named - made_up, "1"), Settings) == {}


def test_a_password_in_an_address_is_not_shown() -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{"elasticsearch.url": "http://elastic:secret@host"})
    assert "secret" not in str(caught.value)
    assert load(**{"elasticsearch.url": "https://me:secret@es.example.org:9243/proxy"}).elasticsearch.url


def test_a_token_under_a_misspelt_name_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWNORMAL_CONSOLE__TOKN", "a-token-of-24-characters")
    with pytest.raises(NewnormalError, match=r"did you mean console\.token") as caught:
        load()
    assert "a-token" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "slack", "url": "https://hooks example.org/hush?x"},
        {"kind": "slack", "url": "https://a:1", "token": "hush"},
        {"kind": "email", "password": "hush"},
        "hush",
    ],
)
def test_nothing_of_a_channel_is_shown_as_it_may_be_a_secret(wrong: object) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{"notify.channels": {"night": wrong}})
    assert "hush" not in str(caught.value)
    assert "notify.channels.night" in caught.value.what
    right = load(
        **{"notify.channels": {"night": {"kind": "slack", "url": "https://hooks.example.org/services/hush?token=hush"}}}
    )
    assert "hush" not in f"{right!r} {right.model_dump_json()}"


@pytest.mark.parametrize("name", ["kafka.bootstrap", "elasticsearch.url", "window.every"])
def test_an_empty_value_is_none_where_the_page_says_so(name: str) -> None:
    assert "empty" in (ALL[name].description or "")
    assert load(**{name: ""}) == Settings()
