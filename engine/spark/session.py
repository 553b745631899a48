"""The Spark session, in this process or on a cluster, tuned for small micro-batches of few large values."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from engine.kept_memory import keep_little
from engine.spark import class_archive, java_process, sockets
from engine.spark.cluster import Cluster
from engine.spark.failure import stated
from engine.spark.interpreter import local_interpreter
from engine.spark.java_options import Memory, When, driver_options
from engine.spec.errors import NewnormalError

PRELOAD = "NEWNORMAL_PRELOAD"
"""Environment variable of the modules that `engine.spark.daemon` imports, separated by commas."""
NEEDED = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""Settings that the jobs need in any session."""
_PROJECTIONS = "spark.sql.codegen.factoryMode"
TUNED = {
    **NEEDED,
    # otherwise Spark weighs what it hands to Python after each row; here a micro-batch is bounded where it is planned
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "engine.spark.daemon",
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.scheduler.mode": "FAIR",
    # otherwise only some kinds of tasks have it in their environment, and these get a Python daemon of their own
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    # a task would write the Java text of its projections anew, which takes longer than the few rows that pass them
    _PROJECTIONS: "NO_CODEGEN",
    # each query and partition has a consumer of its own; those beyond the bound are closed and made anew all the time
    "spark.kafka.consumer.cache.capacity": "256",
}
"""Settings that make small micro-batches fast, for a session that is created for the jobs."""
SMALL = {
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "64",
}
"""Settings of a Spark that holds little memory: the states of all jobs share a cache."""
_STOP_SECONDS = 4.0
_CLOSE_SECONDS = 1.0
_JVM_ENDS_SECONDS = 3.0
_BARE = "hadoop-bare-naked-local-fs"
_LOCAL_FILES = "spark.hadoop.fs.file.impl"


class StartingSpark:
    """Spark, whose JVM starts in the background, while the caller does what does not need it.

    Args:
        jars: Spark's Kafka connector and its dependencies; without them no topics can be read.
        java_home: Directory of a Java ≥ 17; ``None``: the one in the environment.
        work_dir: Scratch space.
        driver_memory: Heap of the JVM.
        log: File for the output of Spark and its Python workers, which keeps it off the terminal.
        java_options: Options of the JVM for its classes; ``None``: it uses the archive of classes, if there is one.
        cluster: The cluster on which the tasks run; ``None``: they run in this JVM. If ``spark-submit`` has started the
            JVM, it has said so itself, and what it was given overrides what is here.
        store_jars: Jars with which Hadoop reaches the store of the checkpoints, if that is no folder and not HDFS.
        options: Further settings of a Spark in this process, e.g. ``spark.hadoop.*`` for that store; a cluster has its
            own.
        optimizes: When the JVM optimizes what runs often.
        memory: How much memory is held for speed.
    """

    def __init__(
        self,
        jars: Sequence[Path],
        java_home: Path | None,
        work_dir: Path,
        driver_memory: str = "2g",
        log: Path | None = None,
        java_options: Sequence[str] | None = None,
        cluster: Cluster | None = None,
        store_jars: Sequence[Path] = (),
        options: Mapping[str, str] | None = None,
        optimizes: When = "usual",
        memory: Memory = "usual",
    ) -> None:
        if java_home:
            os.environ["JAVA_HOME"] = str(java_home)
        self._cluster, self._submitted = cluster, is_submitted()
        work_dir.mkdir(parents=True, exist_ok=True)
        python = cluster.interpreter if cluster else local_interpreter(work_dir)
        if not self._submitted:
            os.environ["PYSPARK_PYTHON"] = python
            os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        os.environ.setdefault("ARROW_NUM_THREADS", "1")
        for_classes = class_archive.reading(jars) if java_options is None else java_options
        for_java = (*driver_options(optimizes, memory), *for_classes)
        self._conf, self._log = _configuration(jars, work_dir, driver_memory, for_java, python), log
        if memory == "small":
            self._conf |= SMALL
            keep_little()
        if cluster:
            self._conf = _without_local(self._conf) | cluster.configuration([*jars, *store_jars])
        else:
            if store_jars:  # not on the class path, of which the archive of classes depends
                self._conf["spark.jars"] = ",".join(map(str, store_jars))
            # otherwise the ports of this JVM take objects of Java from whoever connects
            self._conf |= {**sockets.settings(), "spark.authenticate": "true", **(options or {})}
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._launch, daemon=True, name="spark-jvm")
        self._thread.start()
        java_process.announce(self._thread)

    def session(self, cores: int, preload: Sequence[str] = ()) -> SparkSession:
        """The session, as soon as the JVM is there.

        Args:
            cores: Number of threads of a local Spark; with more than the machine's cores, small jobs can overtake large
                ones.
            preload: Modules of the jobs, which are imported once for all Python workers.

        Raises:
            PySparkRuntimeError: The JVM did not start.
            NewnormalError: ``CLUSTER_UNREACHABLE`` if a cluster refuses the jobs.
        """
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        loaded = {f"spark.executorEnv.{PRELOAD}": ",".join(preload)}
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # whoever started a query reports why it failed
        if self._submitted:
            session = submitted_session(loaded)
        else:
            builder = SparkSession.builder.master(self._cluster.master if self._cluster else f"local[{cores}]")
            builder = builder.appName("newnormal")
            for name, value in {**self._conf, **loaded}.items():
                builder = builder.config(name, value)
            session = self._created(builder)
        session.sparkContext.setLogLevel("ERROR")
        _interpret_without_session(session._jvm)
        return session

    def _created(self, builder: SparkSession.Builder) -> SparkSession:
        try:
            return builder.getOrCreate()
        except Exception as error:
            if self._cluster is None:
                raise
            what, accepted = stated(error), "a cluster that takes the jobs; `spark.driver_host`, see docs/cluster.md"
            now = "nothing was started"
            raise NewnormalError("CLUSTER_UNREACHABLE", what, self._cluster.master, accepted, now) from error

    def cancel(self) -> None:
        """Ends a JVM of which no session was made; one that is still starting ends with this process."""
        if self._thread.is_alive():
            return
        if SparkContext._gateway is not None and SparkContext._active_spark_context is None:
            kill_spark()
            _forget()

    def _launch(self) -> None:
        if SparkContext._gateway is not None:
            return  # this process has a JVM
        try:
            conf = SparkConf(loadDefaults=False).setAll(list(on_command_line(self._conf).items()))
            with ExitStack() as files:
                output: dict[str, Any] = {}
                if self._log is not None:
                    self._log.parent.mkdir(parents=True, exist_ok=True)
                    file = files.enter_context(self._log.open("ab"))
                    output = {"stdout": file, "stderr": file}
                gateway = launch_gateway(conf, output)  # type: ignore[no-untyped-call]
                SparkContext._ensure_initialized(gateway=gateway)
        except BaseException as error:
            self._failure = error


def spark_session(
    jars: Sequence[Path],
    java_home: Path | None,
    cores: int,
    work_dir: Path,
    driver_memory: str = "2g",
    log: Path | None = None,
    preload: Sequence[str] = (),
) -> SparkSession:
    """Starts Spark in this process; arguments as those of `StartingSpark` and `StartingSpark.session`."""
    return StartingSpark(jars, java_home, work_dir, driver_memory, log).session(cores, preload)


def _interpret_without_session(jvm: Any) -> None:
    """Changes the default of how projections are evaluated, for threads of the JVM to which no session belongs.

    Those that serve the state of a task to Python are such. Nothing in Spark sets their settings but the defaults.
    """
    with suppress(Py4JError):  # another version of Spark may keep the default elsewhere: then it is only slower
        entry = jvm.org.apache.spark.sql.internal.SQLConf.CODEGEN_FACTORY_MODE()
        default = entry.getClass().getDeclaredField("_defaultValue")
        default.setAccessible(True)
        modes = jvm.org.apache.spark.sql.catalyst.expressions.CodegenObjectFactoryMode
        default.set(entry, modes.withName(TUNED[_PROJECTIONS]))


def _configuration(
    jars: Sequence[Path], work_dir: Path, driver_memory: str, java_options: Sequence[str], python: str
) -> dict[str, str]:
    """The settings of Spark for a session of this process."""
    conf = {
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.memory": driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(work_dir),
        "spark.sql.warehouse.dir": str(work_dir / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.pyspark.python": python,
        **TUNED,
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": " ".join(f'"{each}"' for each in java_options),
    }
    if any(_BARE in jar.name for jar in jars):
        # Hadoop's own local file system forks a chmod or readlink for each checkpoint file
        conf[_LOCAL_FILES] = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
    return conf


def _without_local(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings for a local session without those by which only this machine reaches it."""
    return {
        name: value for name, value in conf.items() if name not in ("spark.driver.host", "spark.driver.bindAddress")
    }


def on_command_line(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings with which a JVM is started, which all users of the machine can read; the session has the others.

    >>> on_command_line({"spark.driver.memory": "1g", "spark.hadoop.fs.s3a.secret.key": "x", "spark.my.password": "y"})
    {'spark.driver.memory': '1g'}
    """
    secret = re.compile(TUNED["spark.redaction.regex"])
    shown = {name: value for name, value in conf.items() if not name.startswith("spark.hadoop.")}
    if _LOCAL_FILES in conf:  # before there is a session, the JVM already looks for jars, and keeps what it did so with
        shown[_LOCAL_FILES] = conf[_LOCAL_FILES]
    return {name: value for name, value in shown.items() if not secret.search(name)}


def is_submitted() -> bool:
    """Whether ``spark-submit`` has started this process; then the JVM is there already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def submitted_session(more: Mapping[str, str] | None = None) -> SparkSession:
    """A session in the JVM that ``spark-submit`` has started; its ``--conf`` overrides our own tuning, and ``more``."""
    SparkContext._ensure_initialized()
    configuration, builder = SparkConf(), SparkSession.builder
    for name, value in {**TUNED, **(more or {})}.items():
        if not configuration.contains(name):
            builder = builder.config(name, value)
    session = builder.getOrCreate()
    # Spark does not give --py-files to the worker in which it prepares a stateful operator
    paths = [path for path in (session.sparkContext.environment.get("PYTHONPATH"), *sys.path) if path]
    session.sparkContext.environment["PYTHONPATH"] = os.pathsep.join(paths)
    return session


@contextmanager
def telling_of_jvm() -> Iterator[None]:
    """A block that calls this process's JVM, and says so if it is gone, unless ``spark-submit`` has started it.

    Raises:
        NewnormalError: ``SPARK_ENDED`` if it has ended by itself or was killed, before the block or in it.
    """
    _check_jvm(0.0)
    try:
        yield
    except (Py4JError, ConnectionError):
        _check_jvm(_JVM_ENDS_SECONDS)
        raise


def _check_jvm(patience: float) -> None:
    process = SparkContext._gateway.proc if SparkContext._gateway is not None else None
    if process is None:
        return
    try:
        code = process.wait(patience)
    except TimeoutExpired:
        return
    how = f"was killed by signal {-code}" if code < 0 else f"has ended with {code}"
    accepted = "memory for heap, Python workers and what else a JVM needs; see the end of spark.log"
    now = "nothing that was read is lost; the next start goes on from the checkpoints"
    raise NewnormalError("SPARK_ENDED", f"Spark's JVM {how}", "this machine or container", accepted, now)


def end(session: SparkSession, at_once: bool = False, patience: float = _JVM_ENDS_SECONDS) -> None:
    """Stops Spark and waits until its JVM and Python workers are gone; a new session then gets a JVM of its own.

    Args:
        session: The session.
        at_once: Kills the JVM, for when it waits for a server that is away. Checkpoints survive that.
        patience: Seconds that the JVM has to end by itself once Spark has stopped; then it is killed.
    """
    logging.disable(logging.CRITICAL)  # broken connections to a JVM that ends are expected
    try:
        _end(session, at_once, patience)
    finally:
        logging.disable(logging.NOTSET)


def _end(session: SparkSession, at_once: bool, patience: float) -> None:
    gateway = SparkContext._gateway
    if not at_once:
        stopping = Thread(target=_quietly, args=(session.stop,), daemon=True)
        stopping.start()
        stopping.join(_STOP_SECONDS)
        at_once = stopping.is_alive()
    if gateway is None:
        return
    if at_once:
        kill_spark()
    # in a thread, since the shutdown may wait for a call that has not returned
    closing = Thread(target=_quietly, args=(gateway.shutdown,), daemon=True)
    closing.start()
    closing.join(_CLOSE_SECONDS)
    if gateway.proc is not None:  # spark-submit ends its own JVM when this process has ended
        with suppress(OSError):
            gateway.proc.stdin.close()
        try:
            gateway.proc.wait(patience)
        except TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()
    _forget()


def _forget() -> None:
    """Lets the next session have a JVM of its own."""
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def kill_spark() -> None:
    """Kills the JVM of this process at once, if there is one; messages about broken connections are suppressed."""
    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    if gateway is None:
        return
    logging.disable(logging.CRITICAL)
    if context is not None:
        vars(context._accumulatorServer)["handle_error"] = lambda *_: None
    if gateway.proc is not None:
        gateway.proc.kill()


def _quietly(call: Callable[[], object]) -> None:
    with suppress(Exception):
        call()
