"""Makes all checks. A check that cannot be made says so once for all checks of that server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException
from elasticsearch import ApiError, TransportError

from engine.kafka.diagnosis import problem
from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import unusable
from pipelines.doctor.context import Context
from pipelines.doctor.elasticsearch.health import disk as elasticsearch_disk
from pipelines.doctor.elasticsearch.health import health
from pipelines.doctor.elasticsearch.indices import aliases, indices
from pipelines.doctor.environment import interpreters, room
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.doctor.jobs.checkpoints import continuations, layouts, locks
from pipelines.doctor.jobs.unread_versions import unread_versions
from pipelines.doctor.kafka.clock import elasticsearch_clock, kafka_clock
from pipelines.doctor.kafka.history import history
from pipelines.doctor.kafka.input import late, refused, silent
from pipelines.doctor.kafka.reading import reading
from pipelines.doctor.kafka.topics import topics
from pipelines.doctor.kafka.watermarks import watermarks
from pipelines.doctor.notifications import failing, unheard
from pipelines.doctor.scores import scores_pushed

Check = Callable[[Context], Sequence[Finding]]

_environment, _kafka, _elasticsearch = subject("Environment"), subject("Kafka"), subject("Elasticsearch")
_SETTINGS = _environment(
    "SETTING_INVALID",
    Severity.BROKEN,
    "a setting is wrong: no command starts; checks that need settings were not made",
    "correct the settings that are named; settings.md says what is accepted",
)
_NO_SERVERS = _environment(
    "SERVERS_ABSENT",
    Severity.NOTE,
    "no server runs for the state directory, and no setting names one: nothing was asked of it",
    "`newnormal run` or `newnormal services up` starts one; or another `--state-dir`, `--kafka`, `--elasticsearch`",
)
_UNSAID = _environment(
    "CHECK_NOT_MADE",
    Severity.AT_RISK,
    "a server answers, but not to some of the questions; the checks and the first reason are named",
    "see the reason: often an account that may not ask this, or a server that is overloaded",
)
_NO_KAFKA = _kafka(
    "KAFKA_UNREACHABLE",
    Severity.BROKEN,
    "no Kafka broker answers at the address: the jobs wait, and nothing else was asked of it",
    "start it, or correct `kafka.bootstrap` (--kafka)",
)
_NO_ELASTICSEARCH = _elasticsearch(
    "ELASTICSEARCH_UNREACHABLE",
    Severity.BROKEN,
    "Elasticsearch does not answer at the address: the sink waits, and nothing else was asked of it",
    "start it, or correct `elasticsearch.url` (--elasticsearch)",
)

_LOGIN = "see [security.md](security.md#when-it-does-not-work)"
_REFUSALS = {
    "KAFKA_LOGIN_REFUSED": _kafka(
        "KAFKA_LOGIN_REFUSED",
        Severity.BROKEN,
        "Kafka does not accept user and password, token or mechanism: the jobs wait, and nothing else was asked of it",
        f"correct the settings `kafka.sasl_*`; {_LOGIN}",
    ),
    "KAFKA_TLS_FAILED": _kafka(
        "KAFKA_TLS_FAILED",
        Severity.BROKEN,
        "the encrypted connection to Kafka is not made: the jobs wait, and nothing else was asked of it",
        f"renew the certificate, or correct the settings `kafka.ssl_*`; {_LOGIN}",
    ),
    "ELASTICSEARCH_REFUSED": _elasticsearch(
        "ELASTICSEARCH_REFUSED",
        Severity.BROKEN,
        "Elasticsearch does not accept the account or the API key, and nothing else was asked of it",
        f"correct `elasticsearch.user`, `password_file` or `api_key_file`; {_LOGIN}",
    ),
    "ELASTICSEARCH_TLS_FAILED": _elasticsearch(
        "ELASTICSEARCH_TLS_FAILED",
        Severity.BROKEN,
        "the encrypted connection to Elasticsearch is not made: the sink waits, and nothing else was asked of it",
        f"renew the certificate, or correct `elasticsearch.ca_file`; {_LOGIN}",
    ),
}

WITHOUT_SETTINGS: tuple[Callable[[], Sequence[Finding]], ...] = (
    interpreters.python,
    interpreters.java_home,
    interpreters.replaced,
)
"""Checks that can be made even where the settings are wrong."""

OF_MACHINE: tuple[Check, ...] = (
    room.disk, room.memory, room.open_files, locks, layouts, failing, unheard, scores_pushed
)  # fmt: skip
OF_KAFKA: tuple[Check, ...] = (
    topics, continuations, reading, silent, refused, late, watermarks, kafka_clock, unread_versions, history
)  # fmt: skip
OF_ELASTICSEARCH: tuple[Check, ...] = (health, elasticsearch_disk, indices, aliases, elasticsearch_clock)
_SECONDS = 5.0
_ORDER = list(Severity)


@dataclass(frozen=True)
class Examination:
    """What was found, the worst first.

    Attributes:
        findings: All findings.
        checks: How many checks were made.
    """

    findings: tuple[Finding, ...]
    checks: int

    @property
    def broken(self) -> bool:
        """True if something is broken."""
        return any(each.kind.severity is Severity.BROKEN for each in self.findings)


def examine(context: Context) -> Examination:
    """Makes all checks that the servers allow."""
    findings = [finding for check in WITHOUT_SETTINGS for finding in check()]
    done = len(WITHOUT_SETTINGS)
    away = [_kafka_away(context), _elasticsearch_away(context)]
    for checks, absent in ((OF_MACHINE, None), (OF_KAFKA, away[0]), (OF_ELASTICSEARCH, away[1])):
        if absent is None:
            findings += _findings(context, checks)
            done += len(checks)
    findings += _of_servers([reason for reason in away if reason])
    return Examination(tuple(sorted(findings, key=lambda it: _ORDER.index(it.kind.severity))), done)


def examine_without(error: NewnormalError) -> Examination:
    """The checks that can be made although the settings are wrong, and that they are.

    Args:
        error: Why the settings cannot be used.
    """
    wrong = Finding(_SETTINGS, error.what, error.where, error.accepted)
    found = [wrong, *(finding for check in WITHOUT_SETTINGS for finding in check())]
    return Examination(tuple(sorted(found, key=lambda it: _ORDER.index(it.kind.severity))), len(WITHOUT_SETTINGS))


def _findings(context: Context, checks: Sequence[Check]) -> list[Finding]:
    findings: list[Finding] = []
    failed: dict[str, str] = {}
    for check in checks:
        try:
            findings += check(context)
        except (NewnormalError, KafkaException, ApiError, TransportError, TimeoutError, OSError) as error:
            failed[check.__name__] = f"{type(error).__name__}: {error}".strip()
    if failed:
        first = next(iter(failed.values())).splitlines()[0]
        findings.append(Finding(_UNSAID, f"{', '.join(failed)}: {first}", "servers"))
    return findings


def _kafka_away(context: Context) -> Finding | None:
    if not context.bootstrap:
        return Finding(_NO_SERVERS, "no Kafka runs", str(context.settings.state))
    if (refused := problem(context.bootstrap, _SECONDS)) is None:
        return None
    what = f"no broker answers within {_SECONDS:g} s; {len(OF_KAFKA)} checks were not made"
    kind = _REFUSALS.get(refused.code, _NO_KAFKA)
    return Finding(kind, what if kind is _NO_KAFKA else refused.what, context.bootstrap)


def _elasticsearch_away(context: Context) -> Finding | None:
    if not context.url:
        return Finding(_NO_SERVERS, "no Elasticsearch runs", str(context.settings.state))
    try:
        context.elasticsearch.options(request_timeout=_SECONDS).cluster.health(level="cluster")
    except (ApiError, TransportError) as error:
        refused = unusable(error, context.url, "")
        if refused.code in _REFUSALS:
            return Finding(_REFUSALS[refused.code], refused.what, context.url)
        what = f"{error.message or type(error).__name__}; {len(OF_ELASTICSEARCH)} checks were not made"
        return Finding(_NO_ELASTICSEARCH, what, context.url)
    return None


def _of_servers(away: Sequence[Finding]) -> list[Finding]:
    """What is said of absent servers: one finding if none was ever started."""
    if len(away) == 2 and all(each.kind is _NO_SERVERS for each in away):
        return [Finding(_NO_SERVERS, "no Kafka and no Elasticsearch runs", away[0].where)]
    return list(away)
