"""The passwords of the stack: they are generated once, into a volume of the containers that need them.

``python -m deploy.compose.passwords FOLDER`` is what the service `passwords` runs. With an address of Elasticsearch
after it, it tells Elasticsearch the password of Kibana's own account: the service `kibana-login`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from deploy.embedded import login
from engine.spec.errors import NewnormalError

ELASTICSEARCH = "elasticsearch"
"""File of the password of Elasticsearch's user, which may do everything."""
KIBANA = "kibana"
"""File of the password of the account with which Kibana itself asks Elasticsearch."""
ACCOUNT = "account"
"""File of user and password, as ``user:password``, for those who install dashboards."""


def generate(folder: Path) -> None:
    """Makes sure that all passwords are there; those that are there already stay."""
    for name in (ELASTICSEARCH, KIBANA):
        login.generate(folder / name)
    account = folder / ACCOUNT
    account.touch(mode=0o600)
    account.write_text(f"{login.USER}:{login.password(str(folder / ELASTICSEARCH))}\n")


def tell(folder: Path, url: str) -> bool:
    """Gives Kibana's account its password; ``False`` if this Elasticsearch has no logins.

    Raises:
        elasticsearch.ApiError: It refuses for another reason.
        elasticsearch.TransportError: It does not answer.
    """
    from elasticsearch import BadRequestError  # noqa: PLC0415  only for this service

    from pipelines.contracts.elasticsearch_client import elasticsearch_client  # noqa: PLC0415  as above

    with elasticsearch_client(login.address(url, str(folder / ELASTICSEARCH)), request_timeout=30) as client:
        try:
            word = login.password(str(folder / KIBANA))
            client.security.change_password(username="kibana_system", password=word)
        except BadRequestError as error:
            if "no handler found" not in str(error):
                raise
            return False
    return True


if __name__ == "__main__":
    given = Path(sys.argv[1])
    try:
        if len(sys.argv) > 2:
            print("Kibana has its password" if tell(given, sys.argv[2]) else "Elasticsearch has no logins")
        else:
            generate(given)
    except (NewnormalError, OSError) as error:
        sys.exit(str(error))
