"""The places of machines as telemetry tells them, which the incidents job keeps beside what people say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import polars as pl

from engine.state.segments import ShardState, pack, unpack
from pipelines.contracts.records import InferredPlacement, Placement
from pipelines.contracts.records.site_messages import together
from pipelines.jobs.incidents.verdicts import SITE

COLUMN = "inferredplacement"
"""The column of `SiteMessage` that holds them."""
SEGMENT = "places"
MOST = 50_000
"""The most machines whose inferred place is kept; of more, those of which something was written last."""
_KEPT = pl.Schema({SITE: pl.String, "entity": pl.String, "at": pl.Int64, "text": pl.String})
_parsed = lru_cache(MOST)(InferredPlacement.from_json)


class Inferred:
    """The last inferred place of each machine.

    State: the segment ``places``, which is written only if something has changed.

    Args:
        site: Name of the site.
        state: The state of the shard.
    """

    def __init__(self, site: str, state: ShardState) -> None:
        stored = state.get(SEGMENT)
        self._site, self._state = site, state
        self._table = unpack(stored)["places"] if stored else pl.DataFrame(schema=_KEPT)

    def take(self, batch: pl.DataFrame) -> None:
        """Adds messages; of two on a machine the one with the later event time counts, whatever their order."""
        texts = batch[COLUMN].drop_nulls().to_list() if COLUMN in batch.columns else []
        if texts:
            rows = [(self._site, (place := _parsed(text)).entity, place.time, text) for text in texts]
            both = pl.concat([self._table, pl.DataFrame(rows, _KEPT, orient="row")])
            self._keep(both.sort("at", "text").unique("entity", keep="last").sort("at", "entity").tail(MOST))

    def forget(self, before: int) -> None:
        """Forgets that machines have no place any more, if that was so before an event time, epoch milliseconds."""
        old = [at < before and _parsed(text).is_empty for at, text in self._table.select("at", "text").iter_rows()]
        if any(old):
            self._keep(self._table.filter(~pl.Series(old)))

    def beside(self, said: Mapping[str, Placement]) -> dict[str, Placement]:
        """The placements of all machines, in the order of their names.

        Args:
            said: What people say, which counts where they say something.
        """
        inferred = {entity: _parsed(text) for entity, text in self._table.select("entity", "text").iter_rows()}
        return {name: together(said.get(name), inferred.get(name)) for name in sorted(said.keys() | inferred.keys())}

    def _keep(self, table: pl.DataFrame) -> None:
        self._table = table
        self._state.put(SEGMENT, pack({"places": table}))
