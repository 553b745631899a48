"""What is refused before Spark tries a cluster, and what the machines of a cluster are told."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from engine import run
from engine.spark.cluster import FIXED, Cluster
from engine.spark.session import NEEDED
from engine.spark.workers import fingerprint, judge
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.runtime.starting import cluster


def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        return int(other.getsockname()[1])


def test_a_master_that_does_not_answer_is_named_at_once() -> None:
    port = closed_port()
    with pytest.raises(NewnormalError, match=rf"CLUSTER_UNREACHABLE: 127\.0\.0\.1:{port}: Connection refused"):
        Cluster(f"spark://127.0.0.1:{port}").check()


def test_what_the_jobs_need_of_spark_is_not_for_the_user_to_change() -> None:
    assert set(NEEDED) <= FIXED


def test_of_several_masters_one_that_answers_is_enough_and_other_clusters_are_not_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        Cluster(f"spark://127.0.0.1:{closed_port()},localhost:{master.getsockname()[1]}").check()
    Cluster("yarn").check()
    Cluster("k8s://https://localhost:6443").check()


def test_on_this_machine_the_driver_stays_at_the_loopback_address_and_elsewhere_it_is_found_or_told() -> None:
    here, there = Cluster("spark://127.0.0.1:7077"), Cluster("spark://[2001:db8::1]:7077,master:7077")
    assert here.configuration([])["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in there.configuration([])
    told = Cluster("spark://master:7077", driver_host="pipeline").configuration([])
    assert told["spark.driver.host"] == told["spark.driver.bindAddress"] == "pipeline"


def test_machines_without_our_packages_unpack_them_where_their_python_looks_first(tmp_path: Path) -> None:
    packed = Cluster("spark://master:7077", packages=tmp_path / "all.tar.gz", python="python3.11").configuration([])
    archive, _, folder = packed["spark.archives"].partition("#")
    assert archive == str(tmp_path / "all.tar.gz")
    assert packed["spark.executorEnv.PYTHONPATH"].split(os.pathsep)[0] == folder
    assert packed["spark.pyspark.python"] == "python3.11"
    same = Cluster("spark://master:7077").configuration([Path("/jars/a.jar"), Path("/jars/b.jar")])
    assert same["spark.pyspark.python"] == sys.executable and "spark.archives" not in same
    assert same["spark.jars"] == "/jars/a.jar,/jars/b.jar"


def test_the_users_options_override_ours_but_tasks_never_run_twice_at_once() -> None:
    settings = load(**{"spark.master": "yarn", "spark.options": {"spark.executor.memory": "3g"}})
    found = cluster(settings)
    assert found is not None and found.configuration([])["spark.executor.memory"] == "3g"
    assert found.configuration([])["spark.speculation"] == "false"
    with pytest.raises(NewnormalError, match="SETTING_INVALID"):
        load(**{"spark.options": {"spark.speculation": True}})


def test_without_a_cluster_the_options_are_those_of_hadoop_by_which_the_checkpoints_are_reached() -> None:
    endpoint = {"spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000"}
    assert load(**{"spark.options": endpoint}).spark.options == endpoint
    with pytest.raises(NewnormalError, match=r"spark\.options = \['spark\.cores\.max'\], which is for a cluster"):
        load(**{"spark.options": endpoint | {"spark.cores.max": "2"}})


def test_an_archive_of_packages_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = load(**{"spark.master": "yarn", "spark.packages": str(tmp_path / "absent.tar.gz")})
    with pytest.raises(NewnormalError, match=r"FILE_UNUSABLE: there is no file .*absent\.tar\.gz"):
        cluster(settings)


@pytest.mark.parametrize("place", ["s3a://bucket", "hdfs:///state", "abfss:/a@b/c", "file:///state", "s3a://bucket/"])
def test_a_checkpoint_at_no_whole_address_is_refused_and_no_folder_of_that_name_is_made(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NewnormalError, match=f"CHECKPOINT_PLACE: state = {place}"):
        run(kafka=f"127.0.0.1:{closed_port()}", state=place)
    for name in ("spark.checkpoints", "state_dir", "archive.path"):
        with pytest.raises(NewnormalError, match=f"SETTING_INVALID: {name} = ") as caught:
            load(**{name: place})
        assert caught.value.now == "nothing was started"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["s3a://bucket/state", "hdfs://host:8020/state", "abfss://a@b/c/d"])
def test_a_checkpoint_at_an_address_has_one_for_each_namespace_and_what_is_no_checkpoint_stays_here(place: str) -> None:
    settings = load(**{"spark.checkpoints": place, "namespace": "nab."})
    assert str(settings.folder("checkpoints") / "extractor") == f"{place}/nab/extractor"
    assert settings.model_dump(mode="json")["spark"]["checkpoints"] == place
    for name in ("state_dir", "archive.path"):
        with pytest.raises(NewnormalError, match=f"SETTING_INVALID: {name} = "):
            load(**{name: place})


def test_checkpoints_lie_in_the_folder_that_is_named_with_one_for_each_namespace(tmp_path: Path) -> None:
    chosen = {"state_dir": tmp_path / "state", "spark.checkpoints": tmp_path / "shared"}
    assert load(**chosen).folder("checkpoints") == tmp_path / "shared" / "default"
    assert load(namespace="nab.", **chosen).folder("checkpoints") == tmp_path / "shared" / "nab"
    assert load(**chosen).folder("savepoints") == tmp_path / "state" / "savepoints" / "default"
    assert load(state_dir=tmp_path / "state").folder("checkpoints") == tmp_path / "state" / "checkpoints" / "default"


SAME = {"host": "a", "python": ".".join(map(str, sys.version_info[:3])), "checkpoints": "", "kafka": ""}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"checkpoints": "No such file or directory"}, "CHECKPOINT_NOT_SHARED: b: No such file or directory"),
        ({"kafka": "127.0.0.1:9092: Connection refused"}, "WORKERS_UNFIT: b does not reach Kafka: 127.0.0.1:9092"),
        ({"code": "older"}, "WORKERS_UNFIT: b has another version of engine"),
        ({"python": "3.9.1"}, r"WORKERS_UNFIT: b has Python 3\.9\.1, this machine"),
    ],
)
def test_one_machine_that_cannot_run_the_jobs_is_named_with_its_reason(
    other: dict[str, str], message: str, tmp_path: Path
) -> None:
    good = SAME | {"code": fingerprint(["engine"])}
    judge([good], ["engine"], tmp_path, "kafka:9092")
    with pytest.raises(NewnormalError, match=message):
        judge([good, good | {"host": "b"} | other], ["engine"], tmp_path, "kafka:9092")
