"""The ACLs that jobs need in a Kafka with an authorizer, derived from the definitions of the jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from engine.kafka.exactly_once import ledger_group
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import PROOF
from pipelines.jobs.chain import JOBS
from pipelines.jobs.links import LINKS, TOPICS

SINK = "sink"
"""The job that writes to no topic but that of dead letters."""

DETECTOR = "detector"
"""The job beside which the console follows what is believed."""

FOLLOWED = (topics.STATE, topics.FEATURES, topics.NOVELTIES, topics.NEWS)
"""What the console beside the detector follows; those of `pipelines.query.view.detector_topics`: that needs RocksDB."""

TOOLS = "newnormal."
"""How the consumer groups of commands that only look begin, such as `newnormal tail`."""


@dataclass(frozen=True, order=True)
class Acl:
    """One permission.

    Attributes:
        resource: ``topic``, ``group`` or ``transactional-id``.
        name: Name of the resource.
        operation: ``Read``, ``Write``, ``Create``, ``Describe`` or ``Delete``; the others include describing.
        prefix: True if the name is the beginning of names.
    """

    resource: str
    name: str
    operation: str
    prefix: bool = False

    def command(self, principal: str) -> str:
        """The arguments of ``kafka-acls.sh`` that add it."""
        pattern = " --resource-pattern-type prefixed" if self.prefix else ""
        does = f"--operation {self.operation} --{self.resource} {self.name}{pattern}"
        return f"--add --allow-principal User:{principal} {does}"


def of_job(name: str, settings: Settings) -> list[Acl]:
    """What one job of the chain needs beside the common ACLs.

    Args:
        name: Name of the job.
        settings: The settings; those of a version name its topics and ids.
    """
    link = LINKS[name]
    acls = [Acl("topic", topic, "Read") for topic in link.reads(settings)]
    acls += [Acl("topic", topic, "Write") for topic in link.writes(settings)]
    outside = {*topics.FROM_AGENTS, *topics.FROM_OPERATORS} if name in JOBS else set()
    acls += [Acl("topic", settings.reads(each), "Write") for each in link.inputs if each in outside]  # heartbeats
    if name == "normalizer":  # its process notices that nothing arrives any more
        acls += [Acl("topic", settings.topic(topics.SILENCES), operation) for operation in ("Read", "Write")]
        acls.append(Acl("group", "newnormal.content", "Read"))
    if name in JOBS or name == SINK:
        acls.append(Acl("topic", settings.writes(topics.DEADLETTER), "Write"))
        acls.append(Acl("group", ledger_group(f"{settings.owner}{name}"), "Read", prefix=True))
        acls.append(Acl("transactional-id", f"{settings.owner}{name}.writer", "Write", prefix=True))
    return list(dict.fromkeys(acls))


def common(settings: Settings) -> list[Acl]:
    """What every process with jobs needs.

    These are the ledger, the versions, where it notes its settings, the group of the owners, and to create missing
    topics.
    """
    found = [Acl("topic", settings.topic(topics.LEDGER), "Read")]
    found += [Acl("topic", settings.topic(topics.VERSIONS), operation) for operation in ("Read", "Write")]
    found.append(Acl("group", f"{settings.owner}newnormal.owners", "Read"))
    # topics are listed only to those who may describe them; one that is not listed would be created anew
    return found + [
        Acl("topic", each, operation) for operation in ("Create", "Describe") for each in _created(settings)
    ]


def of_console(settings: Settings) -> list[Acl]:
    """What the console needs that runs beside the detector, to follow what this believes (`view.embedded`)."""
    return [
        *(Acl("topic", settings.reads(name), "Read") for name in FOLLOWED),
        Acl("group", TOOLS, "Read", prefix=True),
    ]


def of_operators(settings: Settings) -> list[Acl]:
    """What the console, the state view and the commands need: they read all topics and write those of operators."""
    found = [Acl("topic", settings.reads(name), "Read") for name in (*TOPICS, topics.VERSIONS)]
    found += [Acl("topic", settings.topic(name), "Write") for name in (*topics.FROM_OPERATORS, topics.VERSIONS)]
    return [*found, Acl("group", TOOLS, "Read", prefix=True)]


def of_proofs(settings: Settings) -> list[Acl]:
    """What `newnormal prove` needs: what operators need, and to make and remove versions whose names begin so."""
    links = [LINKS[name] for name in JOBS if LINKS[name].replayed]
    written = dict.fromkeys(topic for link in links for topic in link.outputs) | {topics.DEADLETTER: None}
    begun_with = topics.TELEMETRY, topics.LOGS  # a proof computes what comes after these, at the most
    own = [f"{settings.topic(name)}-{PROOF}" for name in written if name not in begun_with]
    begin = f"{settings.namespace}{PROOF}"
    return [
        *of_operators(settings),
        *(Acl("topic", each, does, prefix=True) for each in own for does in ("Create", "Read", "Write", "Delete")),
        *(Acl("group", begin, does, prefix=True) for does in ("Read", "Delete")),
        Acl("transactional-id", begin, "Write", prefix=True),
    ]


def of_agents(settings: Settings) -> list[Acl]:
    """What agents need, `newnormal agent` among them, and the gateway."""
    return [Acl("topic", settings.topic(name), "Write") for name in (*topics.FROM_AGENTS, topics.CHANGES)]


def needed(settings: Settings, jobs: Collection[str]) -> list[Acl]:
    """All ACLs that a process with these jobs needs, sorted."""

    def every() -> Iterator[Acl]:
        yield from common(settings)
        for name in jobs:
            yield from of_job(name, settings)
        if DETECTOR in jobs and settings.view.embedded:
            yield from of_console(settings)

    return sorted(set(every()))


def _created(settings: Settings) -> list[str]:
    return [*dict.fromkeys([*(settings.reads(name) for name in TOPICS), settings.topic(topics.VERSIONS)])]


BEGIN = "<!-- acls: written by `newnormal docs` from pipelines/runtime/acls.py -->"
END = "<!-- end of the acls -->"


def with_acls(page: str) -> str:
    """A page with the present table between `BEGIN` and `END`; a page without these lines stays as it is."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n\n{table()}\n{end}{after}" if begin and end else page


def table() -> str:
    """A row for each job, for consoles, operators and agents: topics, groups and transactional ids."""
    settings = Settings.model_construct()
    rows = [(f"`{name}`", of_job(name, settings)) for name in LINKS]
    rows += [
        ("the console beside the detector", of_console(settings)),
        ("operators", of_operators(settings)),
        (
            "proofs, beside what operators need",
            [acl for acl in of_proofs(settings) if acl not in of_operators(settings)],
        ),
        ("agents", of_agents(settings)),
    ]
    head = "| who | `Read` on topics | `Write` on topics | `Read` on groups | `Write` on transactional ids |\n"
    lines = [f"| {who} | {' | '.join(_cells(acls))} |\n" for who, acls in rows]
    return head + "| --- | --- | --- | --- | --- |\n" + "".join(lines)


def _cells(acls: Iterable[Acl]) -> list[str]:
    columns = (("topic", "Read"), ("topic", "Write"), ("group", "Read"), ("transactional-id", "Write"))
    names = [[_name(acl) for acl in acls if (acl.resource, acl.operation) == column] for column in columns]
    return [", ".join(dict.fromkeys(each)) for each in names]


def _name(acl: Acl) -> str:
    return f"`{acl.name}{'*' if acl.prefix else ''}`"
