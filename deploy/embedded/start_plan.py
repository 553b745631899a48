"""Plans a start: which servers, from which files, and whether they fit on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from deploy.artifacts import elasticsearch_home, kafka_classpath
from deploy.embedded import preflight
from deploy.embedded.elasticsearch import Elasticsearch, runtime_dir
from deploy.embedded.kafka import Kafka
from deploy.java import java_home
from engine.spark.java_options import OPTIMIZES
from pipelines.contracts.settings import Settings

AnyServer = Kafka | Elasticsearch


def plan(settings: Settings, wanted: Sequence[str]) -> list[AnyServer]:
    """The servers named in ``wanted`` with all their files, after a check of memory and disk.

    Raises:
        NewnormalError: ``MEMORY_SHORT``, ``DISK_FULL``, ``JAVA_MISSING`` or ``DOWNLOAD_FAILED``.
    """
    state, sizes = settings.state, settings.embedded
    heaps = {"kafka": sizes.kafka_heap, "elasticsearch": sizes.elasticsearch_heap}
    data = {name: state / name for name in heaps}
    preflight.check_memory({name: heaps[name] for name in wanted}, preflight.available_memory())
    preflight.check_disk([state, runtime_dir(data["elasticsearch"])] if "elasticsearch" in wanted else [state])
    java, options = str(java_home()), OPTIMIZES[settings.engine.jvm_optimizes]
    servers: list[AnyServer] = []
    if "kafka" in wanted:
        files, published = (java, kafka_classpath(), str(data["kafka"])), sizes.kafka_published or ""
        servers.append(Kafka(*files, heaps["kafka"], sizes.address, published, options))
    if "elasticsearch" in wanted:
        home = str(elasticsearch_home())
        node = Elasticsearch(java, home, str(data["elasticsearch"]), heaps["elasticsearch"], sizes.address, options)
        servers.append(node)
    return servers
