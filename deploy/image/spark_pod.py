"""Starts the driver or an executor of Spark in a pod of Kubernetes: what Spark's own images do in their entry point.

Spark gives a pod's container the argument ``driver`` or ``executor`` and tells the rest in environment variables. Our
image has another entry point, so the pod's template names this module: ``python -m deploy.image.spark_pod``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_JAVA_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")
_EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_TOLD = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
"""Options of an executor, and the variables in which Spark tells their values."""


def command(arguments: Sequence[str], environment: Mapping[str, str], home: Path) -> list[str]:
    """The command of a pod's container.

    Args:
        arguments: The arguments of the container: ``driver`` with those of spark-submit, or ``executor``.
        environment: The environment.
        home: Folder of Spark: that of PySpark.

    Raises:
        ValueError: If the arguments begin with something else.
        KeyError: If a variable is missing.
    """
    role, *rest = arguments or [""]
    if role == "driver":
        bound = f"spark.driver.bindAddress={environment['SPARK_DRIVER_BIND_ADDRESS']}"
        return [str(home / "bin" / "spark-submit"), "--conf", bound, "--deploy-mode", "client", *rest]
    if role != "executor":
        raise ValueError(f"{role!r}: driver or executor is expected")
    numbered = {int(found[1]): value for name, value in environment.items() if (found := _JAVA_OPTION.fullmatch(name))}
    places = [environment.get("SPARK_CONF_DIR", ""), environment.get("SPARK_CLASSPATH", ""), f"{home}/jars/*"]
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    return [
        str(Path(environment.get("JAVA_HOME", "/opt/java")) / "bin" / "java"),
        *(numbered[number] for number in sorted(numbered)),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join(filter(None, places)),
        _EXECUTOR,
        *(word for option, name in _TOLD.items() for word in (option, environment[name])),
    ]


def main() -> None:
    """Becomes the process of the pod."""
    import pyspark  # noqa: PLC0415  only where it runs

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    words = command(sys.argv[1:], os.environ, Path(os.environ["SPARK_HOME"]))
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
