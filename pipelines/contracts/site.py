"""What a site keeps from its first start: how many partitions its topics and how many shards its jobs have.

Topics and checkpoints cannot be read with other numbers. So a command that begins a site with numbers of its own writes
them into the state folder, and every later command that uses the folder has them without being told. A demo also keeps
that its JVMs never optimize: the servers and Spark of its replays then start as fast as its own.
"""

from __future__ import annotations

import json
from contextlib import suppress

from engine.files import write_whole
from engine.spark.java_options import When
from pipelines.contracts.settings import Settings
from pipelines.contracts.settings.state_folder import SITE_FILE


def begin(settings: Settings, partitions: int, shards: int, jvm_optimizes: When | None = None) -> bool:
    """Lets a site with embedded servers begin with these numbers, unless it has begun already or others were chosen.

    A site that keeps its checkpoints elsewhere may have begun there, which only Spark can tell: it is left as it is.

    Args:
        settings: The settings of the command.
        partitions: Partitions of each topic.
        shards: Shards of each job.
        jvm_optimizes: When the JVMs of the site optimize; ``None``: as each command's settings say.

    Returns:
        Whether the site begins so; then the settings must be loaded again.
    """
    chosen = "partitions" in settings.kafka.model_fields_set or "shards" in settings.engine.model_fields_set
    if chosen or settings.kafka.bootstrap or settings.spark.checkpoints:
        return False
    with suppress(OSError):  # the servers, which need the folder too, say what is wrong with it
        if settings.folder("checkpoints").exists() or (settings.state / "kafka").exists():
            return False
        settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        engine = {"shards": shards} | ({"jvm_optimizes": jvm_optimizes} if jvm_optimizes else {})
        site = {"kafka": {"partitions": partitions}, "engine": engine}
        write_whole(settings.file(SITE_FILE), json.dumps(site) + "\n")
        return True
    return False
