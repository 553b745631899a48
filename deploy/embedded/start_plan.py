"""Plans a start: which servers, from which files, and whether they fit on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deploy.artifacts import elasticsearch_home, kafka_classpath
from deploy.embedded import login, preflight
from deploy.embedded.elasticsearch import Elasticsearch, runtime_dir
from deploy.embedded.kafka import Kafka
from deploy.java import java_home
from engine.spark.java_options import OPTIMIZES
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings

AnyServer = Kafka | Elasticsearch


def plan(settings: Settings, names: Sequence[str]) -> list[AnyServer]:
    """The servers named in ``names`` with all their files, after a check of memory and disk.

    Raises:
        NewnormalError: ``MEMORY_SHORT``, ``DISK_FULL``, ``JAVA_MISSING`` or ``DOWNLOAD_FAILED``;
            as `password_file`.
    """
    state, sizes = settings.state, settings.embedded
    heaps = {"kafka": sizes.kafka_heap, "elasticsearch": sizes.elasticsearch_heap}
    data = {name: state / name for name in heaps}
    preflight.check_memory({name: heaps[name] for name in names}, preflight.available_memory())
    preflight.check_disk([state, runtime_dir(data["elasticsearch"])] if "elasticsearch" in names else [state])
    java, options = str(java_home()), OPTIMIZES[settings.engine.jvm_optimizes]
    servers: list[AnyServer] = []
    if "kafka" in names:
        files, published = (java, kafka_classpath(), str(data["kafka"])), sizes.kafka_published or ""
        servers.append(Kafka(*files, heaps["kafka"], sizes.address, published, options))
    if "elasticsearch" in names:
        home = str(elasticsearch_home())
        files, word = (java, home, str(data["elasticsearch"])), password_file(settings)
        servers.append(Elasticsearch(*files, heaps["elasticsearch"], sizes.address, options, word))
    return servers


def password_file(settings: Settings) -> str:
    """The file with Elasticsearch's password, which is generated if no setting names one; empty without a login.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if a setting names a file that cannot be used, ``STATE_DIR`` if none can be
            written.
    """
    chosen = settings.embedded
    if not chosen.elasticsearch_login:
        return ""
    if chosen.elasticsearch_password_file:
        login.password(chosen.elasticsearch_password_file)
        return str(Path(chosen.elasticsearch_password_file).expanduser().absolute())
    try:
        return str(login.generate(settings.state / login.FILE))
    except OSError as error:
        accepted = "a directory that can be written to"
        raise NewnormalError("STATE_DIR", str(error), "state_dir", accepted, "nothing was started") from None
