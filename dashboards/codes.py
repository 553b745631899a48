"""Error codes of the console: name, what it means, what to do."""

from __future__ import annotations

import pipelines.contracts.codes  # noqa: F401  what is beneath
from engine.spec.errors import section

file = section("Files and ports")
file("HOST_REFUSED", "the console was asked for by a name that it does not know", "name it in `console.hosts`")

console = section("Console")
console(
    "ACTION_REFUSED",
    "the console does not take a label, an acknowledgement, a maintenance or a rule from this page or this user",
    "see what is accepted, and [console.md](console.md#labels-acknowledgements-maintenance)",
)
console(
    "LOGIN_REQUIRED",
    "the console that others than this machine reach, or that has a token, does not know who asks",
    "see what is accepted, and [console.md](console.md#access-from-elsewhere)",
)
console("TOKEN_WRONG", "the token is not that of the console", "ask who runs the console for it")
console("COMPARISON_BUSY", "the console is comparing two other versions", "wait until that comparison is done")
console(
    "COMPARISON_FAILED",
    "two versions could not be compared; the reason is in the message",
    "see the reason, and what `newnormal compare` says",
)
console("TRIAL_BUSY", "the console is trying another rule", "try again in some seconds")
console("REQUEST_INVALID", "a request to the console has a wrong or missing value", "the message says which")

elastic = section("Elasticsearch")
elastic(
    "ELASTICSEARCH_QUERY_REFUSED", "it refused what the console asked; the reason is in the message", "see the reason"
)

servers = section("Dashboards on Kibana and Grafana")
servers("DASHBOARD_SERVER_UNREACHABLE", "nothing answers at the address, or it is no address", "check the address")
servers(
    "DASHBOARD_SERVER_VERSION",
    "the dashboards are not made for this version of Kibana or Grafana",
    "see what is accepted",
)
servers(
    "DASHBOARD_SERVER_FORBIDDEN",
    "the server wants another account, or the account may not do this",
    "name an account in a file (`--credentials`) or in the environment",
)
servers("DASHBOARD_SPACE_UNKNOWN", "Kibana has no such space", "name one that is there, or create it in Kibana")
servers("DASHBOARD_SERVER_REFUSED", "the server answers, but not as it should; the reason is in the message", "see it")
servers("DASHBOARD_CREDENTIALS_INVALID", "the credentials cannot be read", "one line: user:password, or a key")
