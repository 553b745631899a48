"""Turns decoded records of several topics into the columns of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from engine.runtime.intake import tagged
from engine.spec.inputs import schema
from engine.spec.source import Source
from engine.spec.steps import apply


def frame(inputs: Sequence[Source], records: Mapping[str, Sequence[dict[str, Any]]]) -> pl.DataFrame:
    """The records of the job, with the columns of `schema`, from decoded records by topic."""
    columns, tables = schema(inputs), []
    for number, source in enumerate(inputs):
        for topic in source.formats:
            table = pa.Table.from_pylist(list(records.get(topic, ())), schema=source.decoded())
            tables.append(tagged(apply(source.steps, table), number, columns))
    return pl.DataFrame(pa.concat_tables(tables).unify_dictionaries())
