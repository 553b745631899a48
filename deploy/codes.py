"""Error codes of the embedded servers, Java and downloads: name, what it means, what to do."""

from __future__ import annotations

import pipelines.contracts.codes  # noqa: F401  what is beneath
from engine.spec.errors import section

server = section("Embedded servers")
server("JAVA_MISSING", "no complete Java 17 or newer was found", "`make setup` installs one; or set `JAVA_HOME`")
server("MEMORY_SHORT", "less free memory than heaps and overhead need (a container's limit counts)", "smaller heaps")
server("DISK_FULL", "less than 1 GB free, or no room for the download", "free space, or another `state_dir`")
server("DOWNLOAD_FAILED", "a file could not be had after three attempts", "see that the network is up; a mirror")
server("DOWNLOAD_ALTERED", "a downloaded file is not, byte for byte, the pinned one", "mend the mirror or proxy")
server("IVY_MISSING", "the installation of PySpark is not complete", "`make setup`")
server("SERVER_FAILED", "a server ended or was not ready in time; its last errors are in the message", "see its log")
server(
    "SERVERS_ABSENT",
    "the servers that a command looks at do not run",
    "`newnormal run` or `services up`, `--state-dir`",
)
server("SERVICES_PARTIAL", "servers run, but not the one that is needed", "`newnormal services down`, then start again")
server("SERVICES_BUSY", "another process has been starting or stopping the servers for minutes", "wait; end the other")
server("STATE_DIR", "the state directory cannot be made or written", "another `state_dir`")

stack = section("Compose stack")
stack(
    "ENGINE_ABSENT", "there is no Docker, or no engine answers", "install or start Docker; see [compose.md](compose.md)"
)
stack("COMPOSE_ABSENT", "Docker has no `docker compose`", "install its plugin for compose")
stack("COMPOSE_REFUSED", "`docker compose` does not accept the files of the stack or `.env`", "correct what it names")
stack("STACK_PORT_TAKEN", "another program listens at a port of the stack", "another port in `deploy/compose/.env`")
stack("STACK_MEMORY", "the engine has less memory than the services need", "more memory, or fewer profiles")
stack("STACK_MAP_COUNT", "`vm.max_map_count` is too low for Elasticsearch", "raise it as the message says")
stack("STACK_BUILD_FAILED", "the image could not be built", "see the lines above the message")
stack("STACK_FAILED", "a service ended, is not healthy, or was not ready in time", "`newnormal stack logs SERVICE`")
stack("STACK_ABSENT", "no container of the stack runs", "`newnormal stack up`")
