"""The JVM side of Newnormal: Spark's Kafka connector, a Kafka broker, an Elasticsearch node, Hadoop's connector for S3.

Versions are pinned here, and the bytes of each file in ``deploy.checksums``: another version needs another line there.
Each set is downloaded once into the user's cache; after that nothing here needs a network or starts Ivy.
``python -m deploy.artifacts`` downloads what all installations need, with ``s3a`` after it the connector for S3 too.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from deploy import bounded_records, checksums
from deploy.ivy import Artifact, retrieve
from deploy.java import cache_dir
from engine.locks import locked
from engine.spec.errors import NewnormalError

_ATTEMPTS = 3


@dataclass(frozen=True)
class ArtifactSet:
    """Artifacts that are used together, in a directory of their own; ``size`` is about what is downloaded, in bytes."""

    name: str
    version: str
    size: int
    artifacts: tuple[Artifact, ...]

    @property
    def directory(self) -> Path:
        """The directory of the complete set; it appears there at once or not at all."""
        return cache_dir() / "jvm" / f"{self.name}-{self.version}"


SPARK = ArtifactSet(
    "spark",
    "4.2.0",
    9_920_000,
    (
        Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),  # also for PySpark 4.2.1
        Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        Artifact("org.apache.kafka", "kafka-clients", "3.9.1"),
        Artifact("org.apache.commons", "commons-pool2", "2.12.1"),
        # without this one each checkpoint file forks a process
        Artifact("com.globalmentor", "hadoop-bare-naked-local-fs", "0.1.0"),
    ),
)
KAFKA = ArtifactSet(
    "kafka",
    "4.1.0-2",  # the second set of jars for 4.1.0
    44_200_000,
    (
        Artifact("org.apache.kafka", "kafka_2.13", "4.1.0", transitive=True),
        Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),  # else the broker logs nothing
        # instead of 1.8.0, out of whose arrays a compressed message could read and write (CVE-2025-12183, -66566)
        Artifact("at.yawk.lz4", "lz4-java", "1.11.1", replaces="org.lz4"),
        # instead of 1.9.4 (CVE-2025-48734)
        Artifact("commons-beanutils", "commons-beanutils", "1.11.0"),
    ),
)
ELASTICSEARCH = ArtifactSet(
    "elasticsearch",
    "8.19.21",
    106_900_000,
    (Artifact("org.elasticsearch.distribution.integ-test-zip", "elasticsearch", "8.19.21", type="zip"),),
)
_SDK = "software.amazon.awssdk"
_SDK_MODULES = """
    annotations apache-client arns auth aws-core aws-query-protocol aws-xml-protocol checksums checksums-spi
    crt-core endpoints-spi http-auth http-auth-aws http-auth-aws-eventstream http-auth-spi http-client-spi
    identity-spi json-utils metrics-spi netty-nio-client profiles protocol-core regions retries retries-spi s3
    s3-transfer-manager sdk-core sts third-party-jackson-core utils utils-lite
"""
S3A = ArtifactSet(
    "s3a",
    "3.5.0",
    12_900_000,
    (
        Artifact("org.apache.hadoop", "hadoop-aws", "3.5.0"),  # of the Hadoop that PySpark brings
        # the modules of Amazon's SDK that it uses, instead of the bundle of all, which has 686 MB
        *(Artifact(_SDK, name, "2.36.2") for name in _SDK_MODULES.split()),
        Artifact("software.amazon.eventstream", "eventstream", "1.0.1"),
        Artifact("org.reactivestreams", "reactive-streams", "1.0.4"),
        Artifact("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    ),
)
ALL = (SPARK, KAFKA, ELASTICSEARCH)
_STORES = {S3A.name: S3A}


def spark_jars() -> list[Path]:
    """The jars to hand to Spark as ``spark.jars``: its Kafka source, and a local file system that forks no processes.

    Kafka's client is the one of `deploy.bounded_records`, which no compressed message fills the memory of.

    Raises:
        NewnormalError: ``DOWNLOAD_FAILED`` if they cannot be downloaded, ``DOWNLOAD_ALTERED`` if they are
            not the pinned ones; the same for the functions below.
    """
    return bounded_records.reading(ensure(SPARK))


def store_jars(place: str | Path) -> list[Path]:
    """The jars with which Hadoop reaches a place: those for S3 if it is an address ``s3a://``, otherwise none."""
    wanted = _STORES.get(str(place).partition("://")[0])
    return sorted(ensure(wanted).glob("*.jar")) if wanted else []


def kafka_classpath() -> str:
    """The class path of the Kafka broker and its tools; see `deploy.bounded_records` for what it refuses."""
    return bounded_records.serving(ensure(KAFKA))


def elasticsearch_home() -> Path:
    """The directory with Elasticsearch's ``bin``, ``lib`` and ``config``; to be read only."""
    return ensure(ELASTICSEARCH) / f"elasticsearch-{ELASTICSEARCH.version}"


def ensure(artifacts: ArtifactSet) -> Path:
    """The directory of a set, after downloading it if it is not there yet; safe in several processes at once."""
    if artifacts.directory.is_dir():
        return artifacts.directory
    with locked(cache_dir() / "jvm" / ".lock"):
        if not artifacts.directory.is_dir():
            _download(artifacts)
    return artifacts.directory


def _download(artifacts: ArtifactSet) -> None:
    parent = artifacts.directory.parent
    parent.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(parent).free, 4 * artifacts.size
    if free < needed:
        raise NewnormalError(
            "DISK_FULL",
            f"{free >> 20} MB free, {needed >> 20} MB needed to download {artifacts.name} {artifacts.version}",
            str(parent),
            "free space there, or XDG_CACHE_HOME naming another place",
            "not downloaded",
        )
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn()
    title = f"Downloading {artifacts.name} {artifacts.version}"
    if not console.is_terminal:
        console.print(f"{title} ({artifacts.size / 1e6:.0f} MB, once) ...", highlight=False)
    work = parent / f".ivy-{artifacts.name}"
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{artifacts.name}-") as temporary:
        target = Path(temporary) / artifacts.name
        target.mkdir()
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task(title, total=artifacts.size)
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    retrieve(artifacts.artifacts, target, work, lambda done: progress.update(task, completed=done))
                    break
                except NewnormalError as error:
                    if error.code != "DOWNLOAD_FAILED" or attempt == _ATTEMPTS:
                        raise
        shutil.rmtree(work, ignore_errors=True)
        checksums.check(target, checksums.pinned(artifacts.directory.name))
        for archive in target.glob("*.zip"):
            _unzip(archive, target)
        target.rename(artifacts.directory)
    console.print(f"{title}: done", highlight=False)


def _unzip(archive: Path, target: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(target)
    archive.unlink()
    for program in target.glob("*/bin/*"):  # zipfile drops the x bits
        program.chmod(0o755)


def main() -> None:
    """Downloads and prepares every set that is not here yet, and the connectors of stores that are named."""
    try:
        for wanted in (*ALL, *(_STORES[name] for name in sys.argv[1:])):
            print(ensure(wanted))
        spark_jars(), kafka_classpath()
    except NewnormalError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
