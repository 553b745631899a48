"""Creates the index template and the read alias, at the start and after an outage; a repetition changes nothing."""

from __future__ import annotations

import time
from typing import Any

from elasticsearch import BadRequestError, Elasticsearch, NotFoundError

from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.jobs.index.partition import Partition, default_daily_from

_MAX_FIELDS = 1_000


class IndexTemplates:
    """The index template of one set of indices.

    Args:
        client: The Elasticsearch client.
        base: First part of the indices' names: `novelties`, or `novelties-v2` for another version.
        alias: Alias that new indices join; ``None``: they join none, as another version is read.
        record: Type of the records in the indices.
        refresh_ms: Interval of the server's own refreshes, milliseconds.
        replicas: Copies of each shard; ``None``: 0 if the cluster has one data node, else 1.
    """

    def __init__(
        self,
        client: Elasticsearch,
        base: str,
        alias: str | None,
        record: type[Record],
        *,
        refresh_ms: int,
        replicas: int | None = None,
    ) -> None:
        self._client, self._base, self._alias, self._record = client, base, alias, record
        self._refresh_ms, self._replicas = refresh_ms, replicas

    @property
    def name(self) -> str:
        """Name of the index template."""
        return f"newnormal-{self._base}"

    def ensure(self) -> Partition:
        """Creates or updates the template, and adds new fields to the existing indices.

        Returns:
            How the indices are partitioned by time; this was decided when the template was first created.

        Raises:
            NewnormalError: ``INDEX_NAME_TAKEN``, ``INDEX_TEMPLATE_REFUSED`` or ``MAPPING_CONFLICT``.
        """
        self._check_alias()
        daily_from, first = self._daily_from()
        partition = Partition(self._base, daily_from)
        try:
            self._client.indices.put_index_template(name=self.name, create=first, **self._body(partition))
        except BadRequestError as error:
            if not first or self._daily_from()[1]:
                raise NewnormalError(
                    "INDEX_TEMPLATE_REFUSED",
                    str(error),
                    self.name,
                    "no other template of these indices with priority 500",
                ) from None
            return self.ensure()  # another sink created the template first: its partition applies
        self._update(partition)
        return partition

    def _check_alias(self) -> None:
        try:
            found = self._client.indices.get_alias(index=self._alias or self._base)
        except NotFoundError:
            return
        if self._alias in found:
            raise NewnormalError(
                "INDEX_NAME_TAKEN",
                f"{self._alias!r} is an index, and cannot be an alias too",
                "elasticsearch.index",
                "a name that no index has, or delete that index",
                "nothing was written",
            )

    def _daily_from(self) -> tuple[int, bool]:
        """The event time from which on indices are daily, and whether it was just chosen: the template is missing."""
        try:
            found = self._client.indices.get_index_template(name=self.name)["index_templates"][0]["index_template"]
            return int(found["_meta"]["daily_from"]), False
        except (NotFoundError, IndexError):
            return default_daily_from(int(time.time() * 1000)), True

    def _body(self, partition: Partition) -> dict[str, Any]:
        settings = {
            "number_of_shards": 1,
            "number_of_replicas": self._copies(),
            "refresh_interval": f"{self._refresh_ms}ms",
            # Machines choose the keys of evidence and influencers. Fields beyond the limit are stored, but not indexed.
            "mapping.total_fields.limit": _MAX_FIELDS,
            "mapping.total_fields.ignore_dynamic_beyond_limit": True,
        }
        template: dict[str, Any] = {"settings": settings, "mappings": mapping(self._record)}
        if self._alias:
            template["aliases"] = {self._alias: {}}
        return {
            "index_patterns": partition.patterns,
            "priority": 500,
            "template": template,
            "meta": {"managed_by": "newnormal", "daily_from": partition.daily_from},
        }

    def _copies(self) -> int:
        if self._replicas is not None:
            return self._replicas
        return 1 if self._client.cluster.health()["number_of_data_nodes"] > 1 else 0

    def _update(self, partition: Partition) -> None:
        there: dict[str, Any] = {
            "index": ",".join(partition.patterns), "allow_no_indices": True, "ignore_unavailable": True
        }  # fmt: skip
        try:
            self._client.indices.put_mapping(**there, **mapping(self._record))
        except BadRequestError as error:
            raise NewnormalError(
                "MAPPING_CONFLICT",
                f"a field has another type in an existing index: {error}",
                there["index"],
                "another elasticsearch.index, or a replay into new indices",
                "nothing was written",
            ) from None
        self._client.indices.put_settings(**there, settings={"index.refresh_interval": f"{self._refresh_ms}ms"})
