"""Makes readers see another version: the console, dashboards and notifications read through one alias."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from elasticsearch import ApiError, TransportError

from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client, unusable
from pipelines.contracts.settings import Settings
from pipelines.jobs.sink.read_alias import ReadAlias
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version


def promote(version: Version, others: Iterable[Version], settings: Settings, now: int) -> None:
    """Switches the aliases of verdicts and of incidents to a version, each in one step.

    A repetition completes a promotion that was interrupted.

    Args:
        version: The version that readers see from now on.
        others: All other versions.
        settings: The settings, with the servers' addresses filled in.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: ``VERSION_EMPTY`` if the version has no indices; ``ELASTICSEARCH_UNREACHABLE`` if the server
            does not answer or refuses.
    """
    url = settings.elasticsearch.url or ""
    mine = settings.of(version.names)
    client = elasticsearch_client(url, request_timeout=30, max_retries=0)
    try:
        rest = [settings.of(other.names) for other in others if other.name != version.name]
        ReadAlias(client, settings.alias).move(mine.index, [other.index for other in rest], now)
        with suppress(LookupError):  # a version that was made before there were incidents has none
            incidents = ReadAlias(client, settings.incident_alias)
            incidents.move(mine.incident_index, [other.incident_index for other in rest], now)
    except LookupError as error:
        what = f"{version.name} has no index template {error}, as its sink has stored nothing yet"
        accepted = "a version with stored verdicts, see `newnormal versions`"
        raise NewnormalError("VERSION_EMPTY", what, url, accepted, "the alias was not changed") from None
    except (ApiError, TransportError) as error:
        raise unusable(error, url, "the same command completes the promotion") from None
    finally:
        client.close()


def shown_version(settings: Settings) -> str | None:
    """Name of the version that readers see; ``None`` if nothing is indexed yet.

    Args:
        settings: The settings, with the servers' addresses filled in.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``; ``ELASTICSEARCH_UNREACHABLE`` if the server does not answer.
    """
    url = settings.elasticsearch.url or ""
    client = elasticsearch_client(url, request_timeout=10, max_retries=0)
    try:
        alias = ReadAlias(client, settings.alias)
        known = Registry(settings).all().values()
        return next((each.name for each in known if alias.shows(settings.of(each.names).index)), None)
    except (ApiError, TransportError) as error:
        raise unusable(error, url, "nothing was changed") from None
    finally:
        client.close()
