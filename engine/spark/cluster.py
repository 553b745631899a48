"""A Spark cluster on which jobs run: its address, and the settings of its machines beside those of a local Spark."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.spark.java_options import EXECUTOR
from engine.spec.errors import NewnormalError

FIXED = frozenset(
    {
        "spark.master",
        "spark.driver.host",
        "spark.driver.memory",
        "spark.driver.extraClassPath",
        "spark.jars",
        "spark.pyspark.python",
        "spark.executorEnv.PYTHONPATH",
        "spark.python.daemon.module",
        "spark.speculation",
        "spark.archives",
        "spark.driver.bindAddress",
        "spark.pyspark.driver.python",
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.sql.execution.arrow.maxBytesPerBatch",
        "spark.sql.streaming.stateStore.providerClass",
        "spark.sql.streaming.noDataMicroBatches.enabled",
        "spark.sql.session.timeZone",
    }
)
"""Settings of Spark that are not for the user: the jobs need them as they are, or `Cluster` makes them."""
_PACKAGES = "newnormal-packages"
"""Folder on the machines of the cluster, in the working directory of an executor, in which the archive is unpacked."""
_STANDALONE = "spark://"
_ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class Cluster:
    """A cluster.

    Args:
        master: Its address: ``spark://host:port``, ``yarn`` or ``k8s://https://host:port``.
        driver_host: Name or address under which its machines reach this one; empty: what Spark finds out.
        packages: Archive (.tar, .tar.gz, .tgz, .zip) of Python packages, to be unpacked on its machines; ``None``:
            they have the same packages at the same path as this one.
        python: Python interpreter on its machines; empty: the path of the one that runs this.
        options: Further settings of Spark; they override those of this module.
    """

    master: str
    driver_host: str = ""
    packages: Path | None = None
    python: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Refuses a cluster that does not answer, before Spark tries it for a minute without a word.

        Raises:
            NewnormalError: ``CLUSTER_UNREACHABLE``.
        """
        reasons = [_problem(address) for address in self._addresses()]
        if reasons and all(reasons):
            accepted = "the address of a running master, as its log says it (spark://host:port)"
            raise NewnormalError(
                "CLUSTER_UNREACHABLE", "; ".join(reasons), self.master, accepted, "nothing was started"
            )

    def configuration(self, jars: Sequence[Path]) -> dict[str, str]:
        """The settings of Spark for a session on this cluster, beside those of a local session.

        Args:
            jars: Jars that the executors need; Spark sends them.
        """
        host = self.driver_host or ("127.0.0.1" if self._loopback() else "")
        settings = {
            "spark.master": self.master,
            "spark.jars": ",".join(map(str, jars)),
            "spark.pyspark.python": self.interpreter,
            "spark.pyspark.driver.python": sys.executable,
            "spark.executorEnv.PYTHONPATH": self.module_path(),
            "spark.executorEnv.POLARS_MAX_THREADS": "1",
            "spark.executorEnv.ARROW_NUM_THREADS": "1",
            "spark.executor.extraJavaOptions": " ".join(EXECUTOR),
            # a second attempt of a task that is slow would write the same state beside the first
            "spark.speculation": "false",
        }
        if host:
            settings |= {"spark.driver.host": host, "spark.driver.bindAddress": host}
        if self.packages is not None:
            settings["spark.archives"] = f"{self.packages}#{_PACKAGES}"
        return {**settings, **self.options}

    @property
    def interpreter(self) -> str:
        """The Python interpreter on the machines of the cluster."""
        return self.python or sys.executable

    def module_path(self) -> str:
        """Where Python on the machines of the cluster looks for modules; folders that are not there do no harm.

        The Python that Spark starts on this machine, to ask a stateful operator for its state, has the same path.
        """
        here = [str(Path(path or ".").absolute()) for path in sys.path]
        return os.pathsep.join([_PACKAGES, *here] if self.packages is not None else here)

    def _addresses(self) -> list[tuple[str, int]]:
        """The masters of a standalone cluster; empty for others."""
        if not self.master.startswith(_STANDALONE):
            return []
        parts = [each.rpartition(":") for each in self.master.removeprefix(_STANDALONE).split(",")]
        return [(host.strip("[]"), int(port)) for host, _, port in parts]

    def _loopback(self) -> bool:
        return any(host in ("localhost", "127.0.0.1", "::1") for host, _ in self._addresses())


def _problem(address: tuple[str, int]) -> str:
    """Why nothing answers at an address; empty if something does."""
    try:
        socket.create_connection(address, _ANSWER_SECONDS).close()
    except OSError as error:
        return f"{address[0]}:{address[1]}: {error.strerror or error}"
    return ""
