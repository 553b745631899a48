"""Ensures that only one process runs a job.

On one machine, a process locks the checkpoints of its jobs. Processes on other machines see it in Kafka: it is a member
of a consumer group that reads nothing, and the broker keeps the list of members that are alive.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import psutil
import structlog
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from deploy.embedded.server_process import is_same_process
from engine.address import kafka_options
from engine.kafka.admin import delete_groups
from engine.spark import checkpoint_lock
from engine.spec.errors import NewnormalError
from engine.waiting import until

_TAKE_OVER_SECONDS = 30.0
_ANSWER_SECONDS = 5.0
_SESSION_MS = 10_000
_FRESH_SECONDS = 15.0
_LEAVING_SECONDS = 15.0
"""For how long members of a group are waited for that leave it."""
log = structlog.get_logger()


@dataclass(frozen=True)
class Owner:
    """A process that runs jobs.

    Attributes:
        host: Name of its machine.
        pid: Its process id on that machine.
        jobs: Names of the jobs that it runs.
    """

    host: str
    pid: int
    jobs: tuple[str, ...]

    def text(self) -> str:
        """The client id under which Kafka knows the process.

        >>> Owner.parse(Owner("pay-01", 7, ("detector", "sink")).text()).jobs
        ('detector', 'sink')
        """
        return f"newnormal/{self.host}/{self.pid}/{','.join(self.jobs)}"

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The process that a client id describes; ``None`` if `text` did not make the id."""
        try:
            name, host, pid, jobs = text.split("/")
            return cls(host, int(pid), tuple(jobs.split(","))) if name == "newnormal" else None
        except ValueError:
            return None

    def is_dead(self) -> bool:
        """True if it was a process of this machine and has ended; the broker notices this only seconds later."""
        return self.host == socket.gethostname() and not psutil.pid_exists(self.pid)


class Ownership:
    """A context manager: while it is entered, this process owns its jobs.

    Args:
        bootstrap: Address of Kafka.
        owner: Put before the names of jobs: jobs of the same name in two namespaces or versions are different jobs.
        ledger: Topic to which the member of the consumer group subscribes; nothing is read from it.
        checkpoints: Directory of the jobs' checkpoints.
        jobs: Names of the jobs.
        take_over: True if a process of this machine that owns the jobs is stopped, and a process on another machine is
            fenced, so that it can write no more.
    """

    def __init__(
        self, bootstrap: str, owner: str, ledger: str, checkpoints: Path, jobs: Sequence[str], take_over: bool
    ) -> None:
        self._bootstrap, self._ledger, self._checkpoints = bootstrap, ledger, checkpoints
        self._owner, self._take_over = owner, take_over
        self._me = Owner(socket.gethostname(), os.getpid(), tuple(jobs))
        self._group = f"{owner}newnormal.owners"
        self._held, self._stopping = ExitStack(), threading.Event()

    def __enter__(self) -> Self:
        """Locks the jobs' checkpoints, and joins the consumer group.

        Raises:
            NewnormalError: ``ALREADY_RUNNING`` if another process of this machine owns one of the jobs.
        """
        with ExitStack() as taken:
            for job in self._me.jobs:
                taken.enter_context(self._locked(job))
            self._held = taken.pop_all()
        threading.Thread(target=self._stay, daemon=True, name="owner").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._held.close()

    def forget(self) -> None:
        """Deletes the group of a version that is no more, when its last members have left; to be called at the end."""

        def deleted() -> bool:
            with suppress(KafkaException, TimeoutError):
                delete_groups(self._bootstrap, self._group)
                return True
            return False

        until(deleted, _LEAVING_SECONDS)

    def others(self, patience: float = 0.0) -> list[Owner]:
        """Other live processes that, according to Kafka, run one of this process's jobs; none if Kafka does not answer.

        Args:
            patience: Seconds for which a failed request is repeated: a new broker must first create its group topic.
        """
        client, deadline = AdminClient(self._options()), time.monotonic() + patience
        while True:
            try:
                described = client.describe_consumer_groups([self._group], request_timeout=_ANSWER_SECONDS)
                members = described[self._group].result(_ANSWER_SECONDS + 1.0).members
                break
            except (KafkaException, TimeoutError) as error:
                if time.monotonic() > deadline:
                    log.warning("cannot tell whether another machine runs these jobs", reason=str(error)[:200])
                    return []
                time.sleep(0.5)
        found = [owner for member in members if (owner := Owner.parse(member.client_id))]
        mine = (self._me.host, self._me.pid)
        live = [each for each in found if (each.host, each.pid) != mine and not each.is_dead()]
        return [each for each in live if set(each.jobs) & set(self._me.jobs)]

    def running(self, job: str, other: Owner) -> NewnormalError:
        """The error ``ALREADY_RUNNING`` for a job and the process that owns it."""
        here = other.host == socket.gethostname()
        place = f"process {other.pid}" if here else f"process {other.pid} of {other.host}"
        return NewnormalError(
            "ALREADY_RUNNING",
            f"{job} runs in {place}" + (f", as {self._owner}{job}" if self._owner else ""),
            str(self._checkpoints),
            "end that process; or --take-over; or another --state-dir and --namespace",
            "nothing was started here, the other process continues",
        )

    def check_others(self) -> None:
        """Checks that no process on another machine owns the jobs; waits some seconds for one that may just have died.

        Raises:
            NewnormalError: ``ALREADY_RUNNING`` if another process still owns one of the jobs after that.
        """
        if self._take_over:
            return
        deadline = time.monotonic() + _SESSION_MS / 1000 + 2.0
        while others := self.others(_FRESH_SECONDS):
            other, job = others[0], next(job for job in others[0].jobs if job in self._me.jobs)
            if time.monotonic() > deadline:
                raise self.running(job, other)
            log.warning("another process runs this job, or did seconds ago", job=job, host=other.host, pid=other.pid)
            time.sleep(2.0)

    def _locked(self, job: str) -> IO[str]:
        held = checkpoint_lock.take(self._checkpoints, job)
        if held is None and self._take_over:
            held = self._taken_over(job)
        if held is None:
            pid = checkpoint_lock.holder(self._checkpoints, job).pid
            raise self.running(job, Owner(socket.gethostname(), pid, (job,)))
        return held

    def _taken_over(self, job: str) -> IO[str] | None:
        """Asks the process that holds a job's lock to end; returns the lock, or ``None`` if it was not released."""
        holder = checkpoint_lock.holder(self._checkpoints, job)
        if is_same_process(holder.pid, holder.started):
            log.info("taking over: the other process is asked to end", pid=holder.pid)
            os.kill(holder.pid, signal.SIGTERM)
        return until(lambda: checkpoint_lock.take(self._checkpoints, job), _TAKE_OVER_SECONDS)

    def _stay(self) -> None:
        """Keeps this process a member of the consumer group until it stops."""
        options = {"group.id": self._group, "enable.auto.commit": False, "session.timeout.ms": _SESSION_MS}
        member = Consumer(self._options() | options)
        member.subscribe([self._ledger])
        while not self._stopping.is_set():
            member.poll(0.5)
        member.close()

    def _options(self) -> dict[str, Any]:
        quiet = {"log_level": 0, "error_cb": lambda _error: None, "reconnect.backoff.max.ms": 1000}
        return {**kafka_options(self._bootstrap), "client.id": self._me.text(), **quiet}
