"""Encodes columns as JSON, one text for each row, with the names of the record type; without a loop over records."""

from __future__ import annotations

import polars as pl

from engine.spec.record import Record


def to_json(frame: pl.DataFrame, record: type[Record]) -> pl.Series:
    r"""The JSON of each row, as ``record.from_json`` reads it.

    Args:
        frame: Has columns named as the record's fields; other columns are left out, as are fields without a column.
        record: The type of the rows.

    >>> from pipelines.contracts.records import Telemetry
    >>> rows = pl.DataFrame({"time": [5], "entity": ['a"b'], "metric": ["cpu"], "value": [0.5], "kind": ["ratio"]})
    >>> print(to_json(rows, Telemetry)[0])
    {"@timestamp":5,"host.name":"a\"b","metric":"cpu","value":0.5,"kind":"ratio"}
    """
    fields = []
    for name, info in record.model_fields.items():
        if name in frame.columns:
            coded = frame.schema[name] in (pl.Categorical, pl.Enum)
            column = pl.col(name).cast(pl.String) if coded else pl.col(name)
            fields.append(column.alias(info.alias or name))
    return frame.select(pl.struct(fields).struct.json_encode().alias("json"))["json"]
