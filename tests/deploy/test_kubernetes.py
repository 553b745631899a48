"""The manifests for the Spark operator fit the image and the settings; the pods' program is what Spark's images run.

No Kubernetes is needed, and none has seen them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

from deploy import bounded_records
from deploy.artifacts import SPARK
from deploy.image.spark_pod import command
from engine.spark.cluster import Cluster
from engine.spark.java_options import EXECUTOR as FOR_TASKS
from engine.spark.java_options import OPTIMIZES
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load

ROOT = Path(__file__).parents[2]
HOME = Path("/opt/spark")
EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.1.0.3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "newnormal-exec-3",
    "SPARK_EXECUTOR_MEMORY": "2048m",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_CLASSPATH": "/opt/cache/*",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_JAVA_OPT_2": "-Dfirst=1",
    "JAVA_HOME": "/opt/java",
}


def documents(file: str = "newnormal.yaml") -> dict[str, dict[str, Any]]:
    """The manifests by kind."""
    text = (ROOT / "deploy/kubernetes" / file).read_text()
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_an_executor_is_started_as_its_environment_says_with_its_java_options_in_order() -> None:
    words = command(["executor"], EXECUTOR, HOME)
    assert words[:5] == ["/opt/java/bin/java", "-Dfirst=1", "-Dlast=1", "-Xms2048m", "-Xmx2048m"]
    assert words[words.index("-cp") + 1] == "/opt/spark/conf:/opt/cache/*:/opt/spark/jars/*"
    told = dict(zip(words[-14::2], words[-13::2], strict=True))
    assert told["--driver-url"] == EXECUTOR["SPARK_DRIVER_URL"] and told["--podName"] == "newnormal-exec-3"
    assert told["--hostname"] == "10.1.0.3" and told["--cores"] == "2" and told["--resourceProfileId"] == "0"


def test_a_driver_is_submitted_in_its_pod_and_anything_else_is_refused() -> None:
    words = command(["driver", "--class", "org.A", "main.py", "run"], {"SPARK_DRIVER_BIND_ADDRESS": "10.1.0.2"}, HOME)
    assert words[0] == "/opt/spark/bin/spark-submit" and words[-4:] == ["--class", "org.A", "main.py", "run"]
    assert "spark.driver.bindAddress=10.1.0.2" in words and "client" in words
    with pytest.raises(ValueError, match="driver or executor"):
        command(["run"], {}, HOME)


def test_the_settings_of_the_manifest_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in documents()["ConfigMap"]["data"].items():
        monkeypatch.setenv(name, value)
    settings = load()
    assert settings.spark.checkpoints is not None and settings.kafka.bootstrap is not None


def test_pods_are_tuned_as_the_jobs_are_elsewhere() -> None:
    told = documents()["SparkApplication"]["spec"]["sparkConf"]
    cluster = Cluster("k8s://https://kubernetes.example").configuration([])
    tuned = {name: value for name, value in told.items() if "Path" not in name and "python" not in name}
    driver = tuned.pop("spark.driver.extraJavaOptions")
    assert driver.split() == [*FOR_TASKS, *OPTIMIZES["usual"]]
    assert tuned == {name: cluster[name] for name in tuned}
    assert tuned.keys() >= {name for name in cluster if "executor" in name} - {"spark.executorEnv.PYTHONPATH"}


def test_versions_and_paths_are_those_of_the_image_and_all_pods_see_the_checkpoints() -> None:
    found, image = documents(), (ROOT / "deploy/image/Dockerfile").read_text()
    spec = found["SparkApplication"]["spec"]
    assert spec["sparkVersion"] == pyspark.__version__
    assert spec["mainApplicationFile"].endswith("/pipelines/cli/submit/newnormal_main.py")
    assert "/opt/newnormal" in image and "XDG_CACHE_HOME=/opt/cache" in image
    jars = f"/opt/cache/newnormal/jvm/{bounded_records.place(SPARK.directory).name}/*"
    assert (
        spec["sparkConf"]["spark.executor.extraClassPath"] == spec["sparkConf"]["spark.driver.extraClassPath"] == jars
    )
    checkpoints = found["ConfigMap"]["data"]["NEWNORMAL_SPARK__CHECKPOINTS"]
    for role in ("driver", "executor"):
        pod = spec[role]["template"]["spec"]
        (container,) = pod["containers"]
        mounted, temporary = container["volumeMounts"]
        assert container["name"] == f"spark-kubernetes-{role}"
        assert container["command"] == ["python", "-m", "deploy.image.spark_pod"]
        assert checkpoints.startswith(mounted["mountPath"])
        volume, scratch = pod["volumes"]
        assert (temporary["mountPath"], scratch["name"], scratch["emptyDir"]) == ("/tmp", temporary["name"], {})
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert volume["persistentVolumeClaim"]["claimName"] == found["PersistentVolumeClaim"]["metadata"]["name"]
    assert spec["driver"]["serviceAccount"] == found["ServiceAccount"]["metadata"]["name"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", spec["sparkVersion"])


def test_the_gateways_ports_are_those_of_its_settings_for_the_pod_the_service_and_who_may_reach_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = documents("gateway.yaml")
    for name, value in (found["ConfigMap"]["data"] | found["Secret"]["stringData"]).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NewnormalError, match="token"):
        load()
    monkeypatch.setenv("NEWNORMAL_GATEWAY__TOKEN", "a-token-of-ones-own")
    gateway = load().gateway
    both = (gateway.syslog_port, gateway.gelf_port, gateway.statsd_port)
    expected = {(gateway.port, "TCP"), *((port, protocol) for port in both for protocol in ("TCP", "UDP"))}
    assert 0 not in both
    pod, service, policy = (found[kind]["spec"] for kind in ("Deployment", "Service", "NetworkPolicy"))
    (container,) = pod["template"]["spec"]["containers"]
    opened = {each["name"]: (each["containerPort"], each.get("protocol", "TCP")) for each in container["ports"]}
    served = {each["targetPort"]: (each["port"], each.get("protocol", "TCP")) for each in service["ports"]}
    (rule,) = policy["ingress"]
    assert opened == served
    assert set(opened.values()) == expected == {(each["port"], each["protocol"]) for each in rule["ports"]}
    assert service["selector"] == pod["template"]["metadata"]["labels"] == policy["podSelector"]["matchLabels"]
    assert container["image"] == documents()["SparkApplication"]["spec"]["image"]
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/var/lib/newnormal/state", "/tmp"}
