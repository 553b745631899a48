"""The chain of production jobs: for each job the topics that it reads and writes.

Only this table says how data flow. The topics that the driver creates, the order in which jobs start and are shown, and
docs/jobs.md follow from it. `pipelines.jobs.chain` has the functions that build the jobs, and loads the models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from engine.spec.duration import duration_ms
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings


@dataclass(frozen=True)
class Link:
    """One job of the chain.

    Args:
        name: Name of the job on the command line, in the status and in the path of its checkpoint.
        inputs: Names of the topics that the job reads, without the namespace.
        outputs: Names of the topics that the job writes, without the namespace: that of its results, those of side
            outputs, that of late records if it has one.
        does: What the job does, for the generated docs.
        stores: Where the job writes to if it writes to no topics, for the generated docs.
        needs: The setting without which, or with which as false, the job does not run, by its dotted name; empty: it
            always runs.
        replayed: True if each version of the chain may have such a job of its own; see `pipelines.versions`.
        fresh: True if a version that is forked before this job begins it without state, as it needs no long history.
        starts_later: True if the job starts when those without this mark work: starting jobs compete for the processor,
            and the way of a metric to the screen comes first. Runs with an end and replays start all jobs at once.
        steady: True if what it reads never pauses: its micro-batches are twice `engine.trigger` apart. Each takes some
            150 ms of CPU whatever it holds, from those jobs, too, that have to answer when a window ends.
        every: Shortest time between its micro-batches, if that is longer: it costs little then.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    does: str
    stores: str = ""
    needs: str = ""
    replayed: bool = True
    fresh: bool = False
    starts_later: bool = False
    steady: bool = False
    every: str = "0s"

    def pause_ms(self, trigger_ms: int) -> int:
        """Shortest time between the starts of two micro-batches, milliseconds, from that of `engine.trigger`.

        >>> LINKS["extractor"].pause_ms(200), LINKS["detector"].pause_ms(200), LINKS["places"].pause_ms(200)
        (400, 200, 10000)
        """
        return max(trigger_ms * (2 if self.steady else 1), duration_ms(self.every))

    def reads(self, settings: Settings) -> tuple[str, ...]:
        """The full names of the topics that the job reads."""
        return tuple(settings.reads(name) for name in self.inputs)

    def runs(self, settings: Settings) -> bool:
        """Whether the job runs with these settings."""
        value: object = reduce(getattr, self.needs.split("."), settings) if self.needs else True
        return value is not None and value is not False

    def writes(self, settings: Settings) -> tuple[str, ...]:
        """The full names of the topics that the job writes."""
        return tuple(settings.writes(name) for name in self.outputs)


CHAIN = (
    Link(
        "normalizer",
        (topics.RAW_JSON, topics.RAW_TELEGRAF, topics.RAW_COLLECTD, topics.RAW_AGENTS),
        (topics.TELEMETRY,),
        "checks the samples of agents and their clocks; decides the watermark",
        steady=True,
    ),
    Link(
        "log_normalizer",
        (topics.LOGS_JSON, topics.LOGS_RSYSLOG, topics.LOGS_AGENTS),
        (topics.LOGS,),
        "checks log lines and their clocks; decides the watermark",
        starts_later=True,
        steady=True,
    ),
    Link(
        "extractor",
        (topics.TELEMETRY,),
        (topics.FEATURES, topics.FEATURES_LATE),
        "computes statistics of each series in event-time windows",
        steady=True,
    ),
    Link(
        "templates",
        (topics.LOGS,),
        (topics.LOG_FEATURES, topics.LOGS_LATE),
        "mines log templates; counts lines by template and by severity",
        starts_later=True,
        steady=True,
    ),
    Link(
        "detector",
        (topics.FEATURES, topics.RULES, topics.LABELS, topics.CHANGES),
        (topics.NOVELTIES, topics.STATE, topics.NEWS, topics.NOVELTIES_LATE),
        "finds what is novel in each series and each machine",
    ),
    Link(
        "log_detector",
        (topics.LOG_FEATURES, topics.RULES, topics.LABELS),
        (topics.NOVELTIES, topics.LOG_NEWS, topics.LOG_FEATURES_LATE),
        "finds what is novel in each machine's log",
        starts_later=True,
    ),
    Link(
        "calls",
        (topics.TRACES_AGENTS,),
        (topics.CALLS,),
        "joins the spans of traces to calls between services; runs unless `topology.infer` is false",
        needs="topology.infer",
        replayed=False,
        starts_later=True,
        every="10s",
    ),
    Link(
        "places",
        (topics.RAW_AGENTS, topics.TRACES_AGENTS, topics.CALLS),
        (topics.PLACES, topics.CHANGES),
        "infers from telemetry where machines are, and what ended on purpose; runs unless `topology.infer` is false",
        needs="topology.infer",
        replayed=False,
        starts_later=True,
        every="10s",
    ),
    Link(
        "incidents",
        (
            *(topics.NEWS, topics.LOG_NEWS, topics.TOPOLOGY, topics.ACKNOWLEDGEMENTS, topics.SILENCES, topics.CHANGES),
            *(topics.RULES, topics.PLACES),
        ),
        (topics.INCIDENTS,),
        "groups novelties over series, machines and time; says when nothing is received",
        fresh=True,
        starts_later=True,
    ),
    Link(
        "sink",
        (topics.NOVELTIES, topics.INCIDENTS, topics.CHANGES),
        (),
        "stores verdicts, incidents and changes in Elasticsearch",
        "Elasticsearch",
    ),
    Link(
        "archive",
        (topics.TELEMETRY, topics.LOGS),
        (),
        "keeps records for longer than Kafka does, by event-time day; runs if `archive.path` is set",
        "Parquet files",
        needs="archive.path",
        replayed=False,
        starts_later=True,
    ),
)
"""All jobs, in the order in which data flow through them."""

LINKS = {link.name: link for link in CHAIN}
"""The jobs by name."""

TOPICS = tuple(dict.fromkeys((*(name for link in CHAIN for name in (*link.inputs, *link.outputs)), *topics.SHARED)))
"""Names of all topics that the chain needs, without the namespace."""
