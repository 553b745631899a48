"""A single Kafka broker in KRaft mode: its settings, how it is started, and when it is ready."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from deploy.embedded.ports import HOST, local
from deploy.embedded.server_process import Launch
from engine.address import kafka_options

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners={listeners},CONTROLLER://{host}:{controller}
advertised.listeners={advertised}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PUBLISHED:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=log
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
message.max.bytes=16777216
replica.fetch.max.bytes=16777216
offsets.topic.num.partitions=8
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.message.timestamp.type=CreateTime
"""

LOG4J = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""

# Formats the data directory on the first start, then becomes the broker: one process to watch.
_SCRIPT = """\
if [ ! -e "$DATA/log/meta.properties" ]; then
  "$JAVA" -XX:TieredStopAtLevel=1 -cp "$JARS" $LOGGING kafka.tools.StorageTool format --ignore-formatted \\
    --cluster-id newnormalAAAAAAAAAAAAA --config "$DATA/server.properties" || exit 1
fi
exec "$JAVA" -Xmx"$HEAP" -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:+ExitOnOutOfMemoryError $OPTIONS \\
  -Djava.awt.headless=true $LOGGING -cp "$JARS" kafka.Kafka "$DATA/server.properties"
"""


@dataclass(frozen=True)
class Kafka:
    """An embedded broker; all its settings but the ports are decided before the supervisor starts.

    Args:
        java: Folder of Java.
        classpath: Kafka's jars.
        data: Folder of its files.
        heap: Size of its heap.
        listen: Address at which it listens.
        published: ``host:port`` at which clients elsewhere find it. The broker tells them this address, so they come in
            at a port of their own, ``published``. Empty: there is no such port.
        java_options: Further options of its JVM.
    """

    name: ClassVar[str] = "kafka"
    password_file: ClassVar[str] = ""
    """There is no login, see docs/decisions/0035-a-login-at-elasticsearch.md."""
    java: str
    classpath: str
    data: str
    heap: str
    listen: str = HOST
    published: str = ""
    java_options: Sequence[str] = ()

    @property
    def preferred(self) -> dict[str, int]:
        """The usual ports, by purpose."""
        return {"port": 9092, "controller": 9093} | ({"published": 29092} if self.published else {})

    @property
    def advertised(self) -> str:
        """The name or address that the broker tells its clients; if it listens everywhere, this machine's host name."""
        return self.listen if local(self.listen) == self.listen else socket.gethostname()

    def launch(self, ports: dict[str, int]) -> Launch:
        """Writes the broker's files and says how to start it on ``ports``."""
        data = Path(self.data)
        data.mkdir(parents=True, exist_ok=True)
        listeners = [f"PLAINTEXT://{self.listen}:{ports['port']}"]
        advertised = [f"PLAINTEXT://{self.advertised}:{ports['port']}"]
        if self.published:
            listeners.append(f"PUBLISHED://{self.listen}:{ports['published']}")
            advertised.append(f"PUBLISHED://{self.published}")
        (data / "server.properties").write_text(
            _PROPERTIES.format(
                host=HOST,
                controller=ports["controller"],
                listeners=",".join(listeners),
                advertised=",".join(advertised),
            )
        )
        (data / "log4j2.properties").write_text(LOG4J)
        environ = {
            **os.environ,
            "JAVA": f"{self.java}/bin/java",
            "JARS": self.classpath,
            "DATA": str(data),
            "HEAP": self.heap,
            "OPTIONS": " ".join(self.java_options),
            "LOGGING": "-Dlog4j2.configurationFile=log4j2.properties",  # relative: a path may hold spaces
        }
        return Launch(["/bin/sh", "-c", _SCRIPT], environ, data)

    def address(self, ports: dict[str, int]) -> str:
        """The bootstrap address for this machine."""
        return f"{local(self.listen)}:{ports['port']}"

    def is_ready(self, ports: dict[str, int]) -> bool:
        """Whether the broker answers and has joined its cluster: it then serves topics."""
        return answers(self.address(ports))


def answers(bootstrap: str, timeout: float = 1.0) -> bool:
    """Whether a Kafka cluster at ``bootstrap`` lists at least one broker within ``timeout`` seconds."""
    from confluent_kafka import KafkaException  # noqa: PLC0415  most commands ask no Kafka
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415  as above

    config: dict[str, Any] = {**kafka_options(bootstrap), "log_level": 0, "error_cb": lambda _error: None}
    client = AdminClient(config)
    try:
        return bool(client.list_topics(timeout=timeout).brokers)
    except KafkaException:
        return False
