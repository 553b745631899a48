"""Finds which jobs read a message besides the one that refused it: sent again, it would count twice for those."""

from __future__ import annotations

from collections.abc import Iterable

from engine.formats.dead_letters import DeadLetter
from engine.spec.errors import NewnormalError
from engine.spec.source import Source
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import plain
from pipelines.jobs.chain import JOBS
from pipelines.jobs.links import LINKS
from pipelines.query.dead_letters.letters import Letter, of_topic
from pipelines.runtime.own_jobs import OwnJobs
from pipelines.versions.version import Version

KEEPERS = frozenset({"archive", "places"})
"""Jobs that judge no messages. The archive keeps them as they came: a replay refuses there what was refused before.
`places` leaves out what it cannot read, and a message that it reads again says the same."""

HARMLESS = frozenset({topics.NOVELTIES, *topics.ABOUT_THE_SITE})
"""Topics whose readers keep one record of each identity: a message that is read twice has no effect."""


class Readers:
    """The jobs that read topics: those of all versions, and some jobs of a user's file.

    Args:
        settings: The settings of the version whose letters are retried, with the address of Kafka filled in.
        versions: All versions.
        own: The jobs of a user's file, if one was given.
    """

    def __init__(self, settings: Settings, versions: Iterable[Version], own: OwnJobs | None = None) -> None:
        self._settings, self._own = settings, own
        live = [version for version in versions if not version.ended]
        self._of = {version.name: (settings.of(version.names), version.jobs) for version in live}
        self._letters: dict[str, dict[tuple[object, ...], Letter]] = {}

    def source(self, letter: DeadLetter) -> Source | None:
        """The input with which the job of a letter reads its topic; ``None`` if the job is not known here."""
        job, topic = letter.job, letter.topic
        if job in JOBS:
            definition = JOBS[job](self._settings)
        elif self._own is not None and job in self._own.names:
            own = self._own.job(job, self._settings)
            assert own is not None
            definition = own
        else:
            return None
        return next((source for source in definition.inputs if topic in source.formats), None)

    def others(self, chosen: Letter) -> list[Letter]:
        """The letters of other jobs that read the topic and refused the same records.

        Raises:
            NewnormalError: ``LETTER_SHARED`` if one of these jobs has used the message.
        """
        letter, alike = chosen.letter, []
        if plain(letter.topic.removeprefix(self._settings.namespace)) in HARMLESS:
            return []
        for name, (settings, jobs) in self._of.items():
            home = settings.writes(topics.DEADLETTER)
            for job in set(jobs) - KEEPERS:
                if letter.topic not in LINKS[job].reads(settings) or (home, job) == (chosen.home, letter.job):
                    continue
                other = self._in(home).get((job, letter.topic, letter.partition, letter.offset, letter.code))
                if other is None or other.letter.refused != letter.refused:
                    what = f"{job} of {name} reads {letter.topic} too, and has used the message"
                    accepted = "a message that all its readers have refused; --force sends it all the same"
                    raise NewnormalError("LETTER_SHARED", what, chosen.place, accepted, "nothing was sent")
                alike.append(other)
        return alike

    def _in(self, home: str) -> dict[tuple[object, ...], Letter]:
        if home not in self._letters:
            found = of_topic(self._settings, home)
            self._letters[home] = {each.key[1:]: each for each in found}
        return self._letters[home]
