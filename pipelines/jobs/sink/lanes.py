"""Several bulk requests at a time: each document has its lane, so that its revisions are written in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from queue import SimpleQueue

from pipelines.jobs.sink.bulk import Action, BulkWriter, Stored


class Lanes:
    """Writes actions over several connections.

    A lane sends one request after the other. All actions with one `_id` go through one lane; of those that wait in it
    together, only the one with the highest version is sent.

    Args:
        writer: Sends requests.
        number: Number of lanes.
        documents: Actions that a lane collects before it sends them.
    """

    def __init__(self, writer: BulkWriter, number: int, documents: int) -> None:
        self._writer, self._number, self._documents = writer, number, documents

    def write(self, actions: Iterable[Action], most: int) -> Stored:
        """Writes actions, each lane in their order.

        So few as go into one request take one lane: several would leave as many segments behind at the next refresh.

        Args:
            actions: The actions.
            most: How many they are at most.

        Raises:
            NewnormalError: See `Patience.insist`. No request is under way any more then, and no further one is made.
        """
        lanes = [_Lane(self._writer) for _ in range(self._number if most > self._documents else 1)]
        waiting: list[dict[str, Action]] = [{} for _ in lanes]
        sent: list[Future[Stored]] = []
        done = Stored()
        try:
            for action in actions:
                lane = hash(action.id) % len(lanes)
                mine = waiting[lane]
                other = mine.get(action.id)
                done.superseded += other is not None
                if other is None or action.version >= other.version:
                    mine[action.id] = action
                if len(mine) >= self._documents:
                    sent.append(lanes[lane].send(mine))
                    waiting[lane] = {}
            sent += [lanes[lane].send(mine) for lane, mine in enumerate(waiting) if mine]
            wait(sent, return_when=FIRST_EXCEPTION)
        finally:
            for request in sent:
                request.cancel()  # after a failure in one lane, what the others have not begun yet; else none is left
            wait(sent)
            for one in lanes:
                one.end()
        for request in sorted(sent, key=Future.cancelled):  # the error of the lane that failed comes before those
            part = request.result()
            done.stored += part.stored
            done.superseded += part.superseded
            done.rejected += part.rejected
        return done


class _Lane:
    """A thread that sends one request after the other. It is a daemon: a server that is silent keeps no process alive.

    Args:
        writer: Sends requests.
    """

    def __init__(self, writer: BulkWriter) -> None:
        self._writer = writer
        self._tasks: SimpleQueue[tuple[Future[Stored], list[Action]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def send(self, actions: dict[str, Action]) -> Future[Stored]:
        """Sends actions after all earlier ones."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="bulk", daemon=True)
            self._thread.start()
        future: Future[Stored] = Future()
        self._tasks.put((future, list(actions.values())))
        return future

    def end(self) -> None:
        """Ends the thread when all requests are done."""
        self._tasks.put(None)

    def _run(self) -> None:
        while task := self._tasks.get():
            future, actions = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._writer.write(actions))
                except BaseException as error:  # it is raised in the thread that waits
                    future.set_exception(error)
