"""The login at Elasticsearch: arguments of its Python client."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from engine.address import Address
from pipelines.contracts.settings.logins.secret_file import pem, secret
from pipelines.contracts.settings.servers import ElasticsearchSettings


def contradictions(elastic: ElasticsearchSettings) -> dict[str, tuple[str, str]]:
    """The settings of the login that do not go together: by name, what is wrong and what is accepted."""
    wrong: dict[str, tuple[str, str]] = {}
    password, key = elastic.password.get_secret_value(), elastic.api_key.get_secret_value()
    in_url = "@" in urlsplit(elastic.url or "").netloc
    names = {
        "user": elastic.user,
        "password": password,
        "password_file": elastic.password_file,
        "api_key": key,
        "api_key_file": elastic.api_key_file,
        "ca_file": elastic.ca_file,
        "certificate_file": elastic.certificate_file,
        "key_file": elastic.key_file,
    }
    named = [name for name, value in names.items() if value]

    def refuse(name: str, why: str, accepted: str) -> None:
        wrong.setdefault(f"elasticsearch.{name}", (why, accepted))

    for name in named:
        if not elastic.url:
            what = f"elasticsearch.{name} is given, but no elasticsearch.url: the embedded server's is known"
            refuse(name, what, "nothing; or elasticsearch.url beside it")
        elif name in ("ca_file", "certificate_file", "key_file") and not elastic.url.startswith("https:"):
            refuse(name, f"elasticsearch.{name} is given, but elasticsearch.url is no https://", "https://host:port")
    for name, file in (("password", elastic.password_file), ("api_key", elastic.api_key_file)):
        if names[name] and file:
            both = f"elasticsearch.{name} and elasticsearch.{name}_file are given"
            refuse(f"{name}_file", both, "one of them")
    if bool(elastic.user) != bool(password or elastic.password_file):
        lacks = "password_file" if elastic.user else "user"
        refuse(lacks, f"elasticsearch.{lacks} is empty", "a user and a password, or neither")
    key_name = "elasticsearch.api_key" if key else "elasticsearch.api_key_file"
    has_key = bool(key or elastic.api_key_file)
    ways = {"elasticsearch.user": elastic.user, key_name: has_key, "a user in elasticsearch.url": in_url}
    if sum(map(bool, ways.values())) > 1:
        both = " and ".join(way for way, present in ways.items() if present)
        refuse(key_name.partition(".")[2] if has_key else "user", f"{both} are given", "one of them")
    if bool(elastic.certificate_file) != bool(elastic.key_file):
        lacks = "key_file" if elastic.certificate_file else "certificate_file"
        refuse(lacks, f"elasticsearch.{lacks} is empty", "a certificate and its key, or neither")
    return wrong


def elasticsearch_address(elastic: ElasticsearchSettings) -> Address:
    """The URL, without user and password, with the arguments by which a client is let in.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if a file that the settings name cannot be used.
    """
    parts, client = urlsplit(elastic.url or ""), dict[str, Any]()
    account, at, place = parts.netloc.rpartition("@")
    if at:
        user, _, password = account.partition(":")
        client["basic_auth"] = (unquote(user), unquote(password))
    if elastic.user:
        client["basic_auth"] = (
            elastic.user,
            secret("elasticsearch.password", elastic.password, elastic.password_file),
        )
    if key := secret("elasticsearch.api_key", elastic.api_key, elastic.api_key_file):
        client["api_key"] = key
    files = {"ca_certs": "ca_file", "client_cert": "certificate_file", "client_key": "key_file"}
    for argument, name in files.items():
        kinds = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY") if name == "key_file" else ("CERTIFICATE",)
        file = getattr(elastic, name)
        if pem(f"elasticsearch.{name}", file, kinds, "a readable file in PEM form"):
            client[argument] = str(Path(file).expanduser())
    if parts.scheme == "https" and "ca_certs" not in client and (system := ssl.get_default_verify_paths().cafile):
        client["ca_certs"] = system
    return Address(parts._replace(netloc=place).geturl(), client)
