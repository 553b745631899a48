"""Error codes of the console: name, what it means, what to do."""

from __future__ import annotations

import pipelines.contracts.codes  # noqa: F401  what is beneath
from engine.spec.errors import section

file = section("Files and ports")
file("PORT_TAKEN", "the console finds no free port, or the address is not of this machine", "`console.port`, `.host`")
file("HOST_REFUSED", "the console was asked for by a name that it does not know", "name it in `console.hosts`")

elastic = section("Elasticsearch")
elastic(
    "ELASTICSEARCH_QUERY_REFUSED", "it refused what the console asked; the reason is in the message", "see the reason"
)
