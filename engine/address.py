"""Addresses of servers that know how a client logs in. What the options of the clients mean is not known here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Address(str):
    """Where a server is, together with the options with which its clients are let in.

    As text it is the address alone, in messages, logs, files and JSON, so that a password among the options is not
    shown wherever the address is. Equality and hash are those of the text. A plain ``str`` stands for a server that
    lets everybody in.

    Attributes:
        client: Options of the Python client: of librdkafka for Kafka, arguments of the client for other servers.
        spark: Options of the Java client that Spark uses.

    >>> kafka = Address("kafka:9093", {"security.protocol": "SSL"})
    >>> f"{kafka}, {kafka!r}", kafka == "kafka:9093", kafka_options(kafka)
    ("kafka:9093, 'kafka:9093'", True, {'bootstrap.servers': 'kafka:9093', 'security.protocol': 'SSL'})
    """

    client: dict[str, Any]
    spark: dict[str, str]

    def __new__(
        cls, address: str, client: Mapping[str, Any] | None = None, spark: Mapping[str, str] | None = None
    ) -> Address:
        """An address with options; none, if they are left out."""
        text = super().__new__(cls, address)
        text.client, text.spark = dict(client or {}), dict(spark or {})
        return text

    def __reduce__(self) -> tuple[type[Address], tuple[str, dict[str, Any], dict[str, str]]]:
        """For processes that get an address from this one: the options go with it."""
        return Address, (str(self), self.client, self.spark)

    def __str__(self) -> str:
        """The address alone, as a plain ``str``."""
        return "".join(self)


def client_options(address: str) -> dict[str, Any]:
    """The options with which a Python client is let in; empty for a plain address."""
    return dict(address.client) if isinstance(address, Address) else {}


def kafka_options(address: str) -> dict[str, Any]:
    """The options of a librdkafka client that say where the brokers are and how it logs in."""
    return {"bootstrap.servers": str(address), **client_options(address)}


def spark_options(address: str) -> dict[str, str]:
    """The options of Spark's Kafka source that say where the brokers are and how it logs in."""
    more = address.spark if isinstance(address, Address) else {}
    return {f"kafka.{name}": value for name, value in {"bootstrap.servers": str(address), **more}.items()}
