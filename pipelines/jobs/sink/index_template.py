"""Creates the index template and the read alias, at the start and after an outage; a repetition changes nothing.

The alias shows one version of the chain at a time. New indices join it by the template of the shown version, and
`pipelines.jobs.sink.read_alias` moves it from one version to another.
"""

from __future__ import annotations

from typing import Any

from elasticsearch import BadRequestError, Elasticsearch, NotFoundError

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from engine.spec.record import Record
from pipelines.contracts.schemas.elasticsearch_mapping import lacking, mapping
from pipelines.jobs.sink.partition import NEVER, Partition, default_daily_from
from pipelines.jobs.sink.read_alias import ReadAlias, template_name

_MAX_FIELDS = 1_000


class IndexTemplates:
    """The index template of one set of indices.

    Args:
        client: The Elasticsearch client.
        base: First part of the indices' names: `novelties`, or `novelties-v2` for another version.
        alias: Alias through which one version is read.
        shown: True if new indices join the alias from the first on, unless it shows other indices already.
        daily: True if what is recent has an index for each day; all else has one for each month.
        record: Type of the records in the indices.
        refresh_ms: Interval of the server's own refreshes, milliseconds.
        replicas: Copies of each shard; ``None``: 0 if the cluster has one data node, else 1.
    """

    def __init__(
        self,
        client: Elasticsearch,
        base: str,
        alias: str,
        record: type[Record],
        *,
        shown: bool = True,
        daily: bool = True,
        refresh_ms: int,
        replicas: int | None = None,
    ) -> None:
        self._client, self._base, self._alias, self._record = client, base, alias, record
        self._shown, self._daily, self._refresh_ms, self._replicas = shown, daily, refresh_ms, replicas
        self._reading = ReadAlias(client, alias)

    @property
    def name(self) -> str:
        """Name of the index template."""
        return template_name(self._base)

    def ensure(self) -> Partition:
        """Creates or updates the template, and adds new fields to the existing indices.

        Returns:
            How the indices are partitioned by time; this was decided when the template was first created.

        Raises:
            NewnormalError: ``INDEX_NAME_TAKEN``, ``INDEX_TEMPLATE_REFUSED`` or ``MAPPING_CONFLICT``.
        """
        self._check_alias()
        kept = self._reading.template(self._base)
        daily_from = kept["_meta"]["daily_from"] if kept else default_daily_from(now_ms()) if self._daily else NEVER
        partition = Partition(self._base, int(daily_from))
        shown = self._alias in kept["template"].get("aliases", {}) if kept else self._is_shown()
        try:
            self._put(partition, shown, create=kept is None)
        except BadRequestError as error:
            if kept or self._reading.template(self._base) is None:
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
            indices = self._client.indices.get_alias(index=self._alias)
        except NotFoundError:
            return
        if self._alias in indices:
            raise NewnormalError(
                "INDEX_NAME_TAKEN",
                f"{self._alias!r} is an index, and cannot be an alias too",
                "elasticsearch.index",
                "a name that no index has, or delete that index",
                "nothing was written",
            )

    def _is_shown(self) -> bool:
        """Whether new indices belong to the alias although no template says so: it shows these indices, or none."""
        indices = self._reading.indices()
        return any(Partition(self._base, 0).holds(name) for name in indices) if indices else self._shown

    def _put(self, partition: Partition, shown: bool, create: bool = False) -> None:
        settings = {
            "number_of_shards": 1,
            "number_of_replicas": self._copies(),
            "refresh_interval": f"{self._refresh_ms}ms",
            # Machines choose the keys of evidence and influencers. Fields beyond the limit are stored, but not indexed.
            "mapping.total_fields.limit": _MAX_FIELDS,
            "mapping.total_fields.ignore_dynamic_beyond_limit": True,
        }
        template: dict[str, Any] = {"settings": settings, "mappings": mapping(self._record)}
        if shown:
            template["aliases"] = {self._alias: {}}
        self._client.indices.put_index_template(
            name=self.name,
            create=create,
            index_patterns=partition.patterns,
            priority=500,
            template=template,
            meta={"managed_by": "newnormal", "daily_from": partition.daily_from},
        )

    def _copies(self) -> int:
        if self._replicas is not None:
            return self._replicas
        return 1 if self._client.cluster.health()["number_of_data_nodes"] > 1 else 0

    def _update(self, partition: Partition) -> None:
        there: dict[str, Any] = {
            "index": ",".join(partition.patterns), "allow_no_indices": True, "ignore_unavailable": True
        }  # fmt: skip
        wanted, index = mapping(self._record), ""
        try:
            for index, found in self._client.indices.get_mapping(**there).items():
                kept = found["mappings"]
                more = wanted | {"properties": lacking(wanted["properties"], kept.get("properties", {}))}
                if more["properties"] or kept.get("dynamic_templates", []) != more["dynamic_templates"]:
                    self._client.indices.put_mapping(**there | {"index": index}, **more)
        except BadRequestError as error:
            raise NewnormalError(
                "MAPPING_CONFLICT",
                f"a field has another type in an existing index: {error}",
                index,
                "another elasticsearch.index, or a replay into new indices",
                "nothing was written",
            ) from None
        self._client.indices.put_settings(**there, settings={"index.refresh_interval": f"{self._refresh_ms}ms"})
