"""The compose files: what compose makes of them, and what holds for all services. No engine is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.compose import passwords
from deploy.compose.project import FOLDER, PROFILES, Stack, memory, ports
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load

CORE = {"passwords", "kafka", "elasticsearch", "pipeline", "agent"}
DASHBOARDS = {"kibana-login", "kibana", "grafana", "dashboards-kibana", "dashboards-grafana"}
CLUSTER = {"spark-master", "spark-worker"}
OUR_OWN = {
    *CLUSTER,
    "passwords",
    "kibana-login",
    "pipeline",
    "agent",
    "gateway",
    "site",
    "dashboards-kibana",
    "dashboards-grafana",
}
DEFAULT = re.compile(r"\$\{(\w+):-([^}]*)\}")

compose = pytest.mark.skipif(
    shutil.which("docker") is None
    or subprocess.run(["docker", "compose", "version"], check=False, capture_output=True).returncode != 0,
    reason="no `docker compose` on this machine",
)


@pytest.fixture(autouse=True)
def nothing_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the shell takes precedence, and the passwords are there."""
    for line in variables():
        monkeypatch.delenv(line, raising=False)
    passwords.generate(tmp_path / "passwords")
    monkeypatch.chdir(tmp_path)


def variables() -> dict[str, str]:
    """The variables of .env."""
    lines = (FOLDER / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def services() -> dict[str, dict[str, Any]]:
    """The services as they stand in compose.yaml, with merges done and variables as they are."""
    read: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    return read


@compose
@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        ((), CORE),
        (("dashboards",), CORE | DASHBOARDS),
        (("load",), CORE | {"site"}),
        (("cluster",), CORE | CLUSTER),
        (("gateway",), CORE | {"gateway"}),
        (PROFILES, CORE | DASHBOARDS | CLUSTER | {"gateway", "site"}),
    ],
)
@pytest.mark.parametrize("embedded", [False, True])
def test_compose_accepts_the_files_for_each_profile(
    profiles: tuple[str, ...], expected: set[str], embedded: bool
) -> None:
    stack = Stack(profiles, embedded)
    done = stack.run("config", "--quiet", capture_output=True)
    assert (done.returncode, done.stderr) == (0, ""), "no error and no warning"
    assert set(stack.services()) == expected


@compose
def test_with_the_embedded_servers_all_core_services_run_from_our_image() -> None:
    assert {service["image"] for service in Stack(embedded=True).services().values()} == {variables()["IMAGE"]}


@compose
@pytest.mark.parametrize("embedded", [False, True])
def test_all_ports_are_opened_for_this_machine_only(embedded: bool) -> None:
    opened = ports(Stack(PROFILES, embedded).services())
    assert {port.address for port in opened} == {"127.0.0.1"}
    assert {(port.service, port.number) for port in opened} == {
        ("pipeline", 8880), ("kafka", 9092), ("elasticsearch", 9200), ("kibana", 5601), ("grafana", 3000),
        ("spark-master", 8080), ("gateway", 8895),
    }  # fmt: skip


@compose
def test_settings_in_a_file_of_the_user_take_precedence_over_those_in_env(tmp_path: Path) -> None:
    file = tmp_path / "settings.env"
    stack = Stack(environ={"SETTINGS_FILE": str(file)})
    with pytest.raises(NewnormalError, match=r"COMPOSE_REFUSED: .*settings\.env"):
        stack.services()
    file.write_text("NEWNORMAL_ENGINE__DRIVER_MEMORY=3g\nNEWNORMAL_DETECTOR__EMIT=all\n")
    given = stack.services()["pipeline"]["environment"]
    assert (given["NEWNORMAL_ENGINE__DRIVER_MEMORY"], given["NEWNORMAL_DETECTOR__EMIT"]) == ("3g", "all")


@compose
def test_the_core_needs_less_memory_than_8_gb_and_no_service_more_than_its_limit() -> None:
    core = Stack().services()
    assert memory(core) <= 6 << 30
    assert memory(core, "mem_limit") <= 9 << 30
    everything = Stack(PROFILES).services().items()
    assert [name for name, each in everything if int(each["mem_reservation"]) > int(each["mem_limit"])] == []


def test_each_container_has_an_init_a_limit_and_an_order_of_starting() -> None:
    found = services()
    assert all((each["init"] is True and "mem_limit" in each and "healthcheck" in each) or name == "pipeline"
               for name, each in found.items())  # fmt: skip
    waits = {name: set(each.get("depends_on", {})) for name, each in found.items()}
    assert waits["pipeline"] == {"kafka", "elasticsearch"} and waits["dashboards-kibana"] == {"kibana"}
    conditions = {
        (name, wait["condition"]) for each in found.values() for name, wait in each.get("depends_on", {}).items()
    }
    once = {"passwords", "kibana-login"}
    assert {name for name, condition in conditions if condition == "service_completed_successfully"} == once
    assert {condition for name, condition in conditions if name not in once} == {"service_healthy"}


def test_containers_of_our_image_write_nothing_outside_of_their_volume_and_have_no_privileges() -> None:
    for name in OUR_OWN:
        service = services()[name]
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"], name


def test_a_secret_reaches_only_the_containers_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a container is given in ``environment`` takes precedence over ``env_file``, which has all settings."""
    needed = {
        "GRAFANA_PASSWORD": {"dashboards-grafana"},
        "NEWNORMAL_GATEWAY__TOKEN": {"gateway"},
        "NEWNORMAL_CONSOLE__TOKEN": {"pipeline"},
        "NEWNORMAL_ELASTICSEARCH__PASSWORD": set(),
    }
    install = {"dashboards-grafana", "dashboards-kibana"}
    for secret, users in needed.items():
        given = {name for name in OUR_OWN if services()[name].get("environment", {}).get(secret) != ""}
        assert given - install == users - install, secret
    for name in ("pipeline", "gateway"):
        for each, value in _environment("127.0.0.1", name).items():
            monkeypatch.setenv(each, value)
    load()


def test_the_volume_of_the_passwords_is_seen_by_those_who_ask_elasticsearch_and_written_by_one() -> None:
    seen = {
        name: each for name, service in services().items() for each in service.get("volumes", ()) if "passwords" in each
    }
    assert set(seen) == {
        "passwords", "elasticsearch", "pipeline", "kibana-login", "kibana", "dashboards-kibana", "dashboards-grafana"
    }  # fmt: skip
    assert [name for name, each in seen.items() if not each.endswith(":ro")] == ["passwords"]


def test_the_passwords_are_made_once_and_are_those_that_the_services_name(tmp_path: Path) -> None:
    folder = tmp_path / "passwords"
    first = {each.name: each.read_text() for each in folder.iterdir()}
    passwords.generate(folder)
    assert {each.name: each.read_text() for each in folder.iterdir()} == first
    text = "".join((FOLDER / file).read_text() for file in ("compose.yaml", "embedded.yaml"))
    assert set(re.findall(r"/run/passwords/(\w+)", text)) == set(first), (
        "each file is used, and each that is used is made"
    )
    assert first["account"] == f"elastic:{first['elasticsearch']}" and first["kibana"] != first["elasticsearch"]
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}, "the official image wants that"


def test_images_are_pinned_and_defaults_in_the_files_are_those_of_env() -> None:
    chosen = variables()
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", chosen[name]) for name in chosen if name.endswith("_VERSION"))
    text = "".join((FOLDER / file).read_text() for file in ("compose.yaml", "embedded.yaml"))
    wrong = {(name, default) for name, default in DEFAULT.findall(text) if name in chosen and chosen[name] != default}
    assert wrong == set()
    assert ":latest" not in text


def test_the_dockerfile_copies_nothing_but_the_code_and_ends_without_root() -> None:
    text = (Path(__file__).parents[3] / "deploy/image/Dockerfile").read_text()
    assert text.rstrip().splitlines()[-2:] == ['ENTRYPOINT ["newnormal"]', 'CMD ["--help"]']
    assert text.rindex("\nUSER newnormal") > text.rindex("\nFROM ")
    assert "HEALTHCHECK" in text


def _environment(listen: str, service: str = "pipeline") -> dict[str, str]:
    """The settings of a container: those of the image, and those of the compose file."""
    image = re.findall(r"(NEWNORMAL_\w+)=(\S+)", (FOLDER.parent / "image" / "Dockerfile").read_text())
    own = services()[service]["environment"]
    given = {name: DEFAULT.sub(lambda m: listen if m[1] == "LISTEN" else m[2], own[name]) for name in own}
    return dict(image) | {name: value.replace("/run/passwords", "passwords") for name, value in given.items()}


def test_the_console_of_the_container_starts_where_its_port_is_opened_to_this_machine_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in _environment("127.0.0.1").items():
        monkeypatch.setenv(name, value)
    console = load().console
    assert (console.host, console.reached) == ("0.0.0.0", "127.0.0.1")


def test_opened_to_others_it_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _environment("0.0.0.0").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NewnormalError, match=r"console\.published = '0\.0\.0\.0'"):
        load()
    monkeypatch.setenv("NEWNORMAL_CONSOLE__TOKEN", "a-token-of-24-characters")
    assert load().console.reached == "0.0.0.0"


def test_the_pipeline_finds_the_cluster_of_the_profile_with_the_line_that_env_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (line,) = re.findall(r"NEWNORMAL_SPARK__MASTER=(\S+)", (FOLDER / ".env").read_text())
    for name, value in _environment("127.0.0.1").items() | {("NEWNORMAL_SPARK__MASTER", line)}:
        monkeypatch.setenv(name, value)
    spark, found = load().spark, services()
    assert line in found["spark-worker"]["command"], "the workers register where the pipeline looks"
    assert spark.master == f"spark://{found['spark-master']['hostname']}:7077"
    assert spark.driver_host == found["pipeline"]["hostname"]
    assert set(found["pipeline"]["volumes"]) > set(found["spark-worker"]["volumes"]), "all see the checkpoints"


def test_so_does_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _environment("127.0.0.1", "gateway").items():
        monkeypatch.setenv(name, value)
    assert (load().gateway.host, load().gateway.reached) == ("0.0.0.0", "127.0.0.1")
    monkeypatch.setenv("NEWNORMAL_GATEWAY__PUBLISHED", "0.0.0.0")
    with pytest.raises(NewnormalError, match=r"gateway\.published = '0\.0\.0\.0'"):
        load()
    monkeypatch.setenv("NEWNORMAL_GATEWAY__TOKEN", "a-token-of-24-characters")
    assert load().gateway.reached == "0.0.0.0"
