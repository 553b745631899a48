"""The alias through which readers see one version of the documents, and its switch from one version to another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from elasticsearch import Elasticsearch, NotFoundError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from pipelines.jobs.sink.partition import Partition

_DAY_MS = 86_400_000


def template_name(base: str) -> str:
    """Name of the index template of the indices with a base name."""
    return f"newnormal-{base}"


class ReadAlias:
    """The alias through which documents are read.

    Args:
        client: The Elasticsearch client.
        alias: Name of the alias.
    """

    def __init__(self, client: Elasticsearch, alias: str) -> None:
        self._client, self._alias = client, alias

    def indices(self) -> list[str]:
        """Names of the indices that the alias shows, sorted."""
        try:
            return sorted(self._client.indices.get_alias(name=self._alias))
        except NotFoundError:
            return []

    def shows(self, base: str) -> bool:
        """True if the alias shows indices with a base name, or will show the first of them when it is created."""
        indices = self.indices()
        if indices:
            return any(Partition(base, 0).holds(name) for name in indices)
        template = self.template(base)
        return template is not None and self._alias in template["template"].get("aliases", {})

    def move(self, base: str, others: Iterable[str], now: int) -> None:
        """Makes the alias show the indices of one version and no others, in one step that no reader can look into.

        New indices join an alias by their template, and Elasticsearch cannot change templates and aliases in one
        request. So the others' templates leave the alias before the switch, and the template of the version joins
        after it. The indices of the present days are created before: none is new between these steps. Whatever step
        this ends at, the alias shows one version; a second call completes it.

        Args:
            base: First part of the names of the version's indices; its template must exist.
            others: The same of all other versions.
            now: The present, epoch milliseconds.

        Raises:
            LookupError: If the version has no template, as its sink has never run.
        """
        mine = self.template(base)
        if mine is None:
            raise LookupError(template_name(base))
        partition = Partition(base, int(mine["_meta"]["daily_from"]))
        for day in (now - _DAY_MS, now, now + _DAY_MS):
            self._create(partition.index(day))
        for other in others:
            self._join(other, shown=False)
        self._switch(partition)
        self._join(base, shown=True)
        self._switch(partition)

    @retry(retry=retry_if_exception_type(NotFoundError), stop=stop_after_attempt(5), wait=wait_fixed(0.2), reraise=True)
    def _switch(self, partition: Partition) -> None:
        """One request of the server, which applies all its actions at once; repeated if an index was just deleted."""
        leave = [name for name in self.indices() if not partition.holds(name)]
        join = self._client.indices.get(index=",".join(partition.patterns), allow_no_indices=True)
        actions: list[dict[str, Any]] = [{"remove": {"index": name, "alias": self._alias}} for name in leave]
        actions += [{"add": {"index": name, "alias": self._alias}} for name in join]
        if actions:
            self._client.indices.update_aliases(actions=actions)

    def _create(self, index: str | None) -> None:
        if index and not self._client.indices.exists(index=index):
            self._client.options(ignore_status=400).indices.create(index=index)  # 400: the sink was faster

    def template(self, base: str) -> dict[str, Any] | None:
        """The index template of the indices with a base name; ``None`` if the server has none."""
        try:
            templates = self._client.indices.get_index_template(name=template_name(base))["index_templates"]
            return dict(templates[0]["index_template"])
        except (NotFoundError, IndexError):
            return None

    def _join(self, base: str, shown: bool) -> None:
        """Makes new indices of a version join the alias, or not."""
        body = self.template(base)
        if body is None or (self._alias in body["template"].get("aliases", {})) == shown:
            return
        aliases: dict[str, Any] = {self._alias: {}} if shown else {}
        self._client.indices.put_index_template(
            name=template_name(base),
            index_patterns=body["index_patterns"],
            priority=body["priority"],
            template={**body["template"], "aliases": aliases},
            meta=body["_meta"],
        )
