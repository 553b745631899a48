"""The last windows of series, read from the end of the topic `features`: no view and no Elasticsearch is needed.

All series that send are there, also those of which no verdict is stored because all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice

import polars as pl
from confluent_kafka import Message, TopicPartition

from engine.kafka import content
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.globs import matches
from pipelines.contracts.settings import Settings
from pipelines.jobs.detectors.metrics.judging import rows_to_judge
from pipelines.jobs.detectors.metrics.micro_batch import newest
from pipelines.query import tables

_LAST = 60
"""How many offsets of each partition are read. A micro-batch of the extractor takes two of each: results, and the mark
of the transaction."""

_AT_ONCE = 50
Wanted = Callable[[pl.DataFrame], pl.DataFrame]


def recent_windows(settings: Settings, entity: str = "*", metric: str = "*") -> pl.DataFrame:
    """The last windows of the series that match globs, with the value that is judged.

    Args:
        settings: The settings, with the address of Kafka filled in.
        entity: Glob over machines.
        metric: Glob over metrics.

    Returns:
        The columns of `rows_to_judge`: ``entity``, ``metric``, ``kind``, ``window_start``, ``window_end`` (epoch ms),
        ``value`` and others; without columns if nothing is known.

    Raises:
        NewnormalError: ``KAFKA_READ_FAILED``.
    """
    return windows_of((message.value() or b"" for message in _messages(settings)), entity, metric)


def windows_of(messages: Iterator[bytes], entity: str, metric: str, wanted: Wanted = lambda rows: rows) -> pl.DataFrame:
    """The windows in messages of `features`, each as its newest revision tells it; see `recent_windows`.

    Args:
        messages: The messages; of one machine in the order in which they were written.
        entity: Glob over machines.
        metric: Glob over metrics.
        wanted: Chooses what is kept of each piece; of a window that it keeps, it also keeps all later revisions.
    """
    parts = []
    while some := list(islice(messages, _AT_ONCE)):
        features, _ = tables.frame(topics.FEATURES, some)
        features = features.filter(pl.Series(matches(entity, features["entity"])))
        features = features.filter(pl.Series(matches(metric, features["metric"])))
        if features.height:
            parts.append(wanted(rows_to_judge(features)))
    return newest(pl.concat(parts)).drop_nulls("value") if parts else pl.DataFrame()


def _messages(settings: Settings) -> Iterator[Message]:
    bootstrap, topic = settings.kafka.bootstrap or "", settings.topic(topics.FEATURES)
    spans = {}
    with closing(content.bounded_reader(bootstrap, "newnormal.sql")) as reader:
        try:
            partitions = tables.partitions(reader, topic)
        except NewnormalError as error:
            if error.code == "TOPIC_UNKNOWN":
                return
            raise
        for partition in partitions:
            low, high = content.bounds(reader, TopicPartition(topic, partition))
            spans[topic, partition] = (max(low, high - _LAST), high)
    yield from content.between(bootstrap, spans)
