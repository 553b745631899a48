"""A real Kafka broker with TLS, logins and ACLs: one listener for each way to be let in, or not."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from deploy.artifacts import kafka_classpath
from deploy.embedded.kafka import LOG4J, answers
from deploy.java import java_home
from tests.security.certificates import Authority, Certificate
from tests.security.tokens import Signer
from tests.security.waiting import until

USER, PASSWORD = "newnormal", 'hush-Kafka "7\\%" word'
"""A user, and a password with the characters that have a meaning in a JAAS entry."""
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=INTERNAL://127.0.0.1:{internal},SASL://127.0.0.1:{sasl},EXPIRED://127.0.0.1:{expired},\
MUTUAL://127.0.0.1:{mutual},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL,EXPIRED:SASL_SSL,MUTUAL:SSL
inter.broker.listener.name=INTERNAL
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
ssl.keystore.type=PEM
ssl.keystore.location={server}
ssl.truststore.type=PEM
ssl.truststore.location={ca}
ssl.principal.mapping.rules=RULE:^CN=([^,]*).*$/$1/
listener.name.mutual.ssl.client.auth=required
listener.name.sasl.ssl.keystore.type=PEM
listener.name.sasl.ssl.keystore.location={shown}
listener.name.expired.ssl.keystore.type=PEM
listener.name.expired.ssl.keystore.location={old}
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.sasl.scram-sha-256.sasl.jaas.config={scram}
listener.name.sasl.scram-sha-512.sasl.jaas.config={scram}
listener.name.expired.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.expired.scram-sha-512.sasl.jaas.config={scram}
listener.name.sasl.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
listener.name.sasl.oauthbearer.sasl.server.callback.handler.class=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler
sasl.oauthbearer.jwks.endpoint.url={keys}
sasl.oauthbearer.jwt.validator.class=org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator
log.dirs=log
auto.create.topics.enable=false
message.max.bytes=16777216
replica.fetch.max.bytes=16777216
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


@dataclass
class SecureKafka:
    """A broker; use `secure_kafka`.

    Attributes:
        internal: Address of a listener without a login; what comes there may do everything.
        sasl: Address for TLS and a login.
        expired: The same with a certificate that has expired.
        mutual: Address for TLS with a client's certificate.
        authority: Who has signed the certificates.
        signer: Signs the tokens that the broker accepts.
        folder: Folder of its files, in which it runs.
        command: The command that starts it.
    """

    internal: str
    sasl: str
    expired: str
    mutual: str
    authority: Authority
    signer: Signer
    folder: Path
    command: list[str]
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def log(self) -> Path:
        """What the broker has said."""
        return self.folder / "broker.log"

    def start(self) -> None:
        """Starts the broker, and returns when it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, cwd=self.folder, stdout=log, stderr=log)

        def ready() -> bool:
            assert self.process and self.process.poll() is None, self.log.read_text()[-3000:]
            return answers(self.internal)

        until("the broker answers", ready, 180)

    def kill(self) -> None:
        """Ends it with SIGKILL, and with it all connections."""
        if self.process:
            self.process.kill()
            self.process.wait(60)

    def show(self, certificate: Certificate) -> None:
        """The listener `sasl` shows this certificate after the next start."""
        shutil.copyfile(certificate.both, _shown(self.folder))

    def scram(self, user: str, password: str) -> None:
        """Makes a user for both kinds of SCRAM."""
        client = AdminClient({"bootstrap.servers": self.internal})  # a name, so that it lives until the answers came
        for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(user, ScramCredentialInfo(kind, 4096), password.encode())
            for future in client.alter_user_scram_credentials([change]).values():
                future.result(30)

    def allow(self, user: str, acls: Iterable[tuple[str, str, bool, str]]) -> None:
        """Lets a user do something: kind of resource, name, whether it is a prefix, operation."""
        client = AdminClient({"bootstrap.servers": self.internal})
        bindings = [_binding(user, *acl) for acl in acls]
        for future in client.create_acls(bindings).values():
            future.result(30)

    def forbid(self, user: str, acl: tuple[str, str, bool, str]) -> None:
        """Takes back what `allow` has allowed."""
        kind, name, prefix, operation = acl
        wanted = _binding(user, kind, name, prefix, operation)
        client: Any = AdminClient({"bootstrap.servers": self.internal})
        from confluent_kafka.admin import AclBindingFilter  # type: ignore[attr-defined]  # noqa: PLC0415

        fields = (wanted.restype, wanted.name, wanted.resource_pattern_type, wanted.principal, wanted.host)
        one = AclBindingFilter(*fields, wanted.operation, wanted.permission_type)
        for future in client.delete_acls([one]).values():
            assert future.result(30)


def _binding(user: str, kind: str, name: str, prefix: bool, operation: str) -> Any:
    kinds = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.BROKER}
    resource = kinds.get(kind) or ResourceType.TRANSACTIONAL_ID
    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    allowed, does = AclPermissionType.ALLOW, AclOperation[operation.upper()]
    return AclBinding(resource, name, pattern, f"User:{user}", "*", does, allowed)


def _ports(names: Iterable[str]) -> dict[str, int]:
    with ExitStack() as held:
        sockets = {name: held.enter_context(socket.create_server(("127.0.0.1", 0))) for name in names}
        return {name: each.getsockname()[1] for name, each in sockets.items()}


def _shown(folder: Path) -> Path:
    return folder / "shown.pem"


@contextmanager
def secure_kafka(folder: Path, more: str = "") -> Iterator[SecureKafka]:
    """Runs the broker for the length of a block; the user `USER` exists, and may do nothing yet.

    Args:
        folder: Where its files are.
        more: Further lines of its properties.
    """
    authority, signer = Authority(folder / "authority"), Signer(folder / "authority" / "keys.json")
    server, old = authority.issue("broker"), authority.issue("old-broker", expired=True)
    ports = _ports(("internal", "sasl", "expired", "mutual", "controller"))
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    properties = _PROPERTIES.format(
        **ports,
        server=server.both,
        shown=_shown(folder),
        old=old.both,
        ca=authority.file,
        keys=signer.keys.as_uri(),
        user=USER,
        password=escaped,
        scram="org.apache.kafka.common.security.scram.ScramLoginModule required;",
    )
    (folder / "server.properties").write_text(properties + more)
    (folder / "log4j2.properties").write_text(LOG4J)
    java = [f"{java_home()}/bin/java", "-Xmx384m", "-Dlog4j2.configurationFile=log4j2.properties"]
    java += [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={signer.keys.as_uri()}", "-cp", kafka_classpath()]
    address = {name: f"127.0.0.1:{port}" for name, port in ports.items() if name != "controller"}
    command = [*java, "kafka.Kafka", "server.properties"]
    kafka = SecureKafka(**address, authority=authority, signer=signer, folder=folder, command=command)
    form = ["kafka.tools.StorageTool", "format", "--cluster-id", "newnormalAAAAAAAAAAAAA", "--config"]
    with kafka.log.open("ab") as log:
        made: dict[str, Any] = {"cwd": folder, "stdout": log, "stderr": log}
        subprocess.run([*java, *form, "server.properties"], check=True, timeout=120, **made)
    kafka.show(server)
    try:
        kafka.start()
        kafka.scram(USER, PASSWORD)
        yield kafka
    finally:
        kafka.kill()
