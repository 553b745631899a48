"""The log lines of all machines: their number, templates and parameters. Incidents add errors and new messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from datagen.simulator.arrival import Ints
from datagen.simulator.config import SimulatorConfig
from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.noise import Floats, Noise
from datagen.simulator.topology import Topology

_MOST = 400
"""Largest number of lines of one machine in one step."""


@dataclass(frozen=True)
class Template:
    """A kind of message, with the parameters ``{a}``, ``{b}``, ``{ip}`` and ``{ms}``; ``weight``: its frequency."""

    program: str
    severity: int
    text: str
    weight: float = 0.0


TEMPLATES = (
    Template("sshd", 6, "Accepted publickey for svc{a} from {ip} port {b} ssh2", 3),
    Template("sshd", 6, "Connection closed by {ip} port {b} [preauth]", 2),
    Template("systemd", 6, "Started Session {b} of User svc{a}.", 3),
    Template("systemd", 6, "session-{b}.scope: Deactivated successfully.", 3),
    Template("CRON", 6, "(root) CMD (/usr/lib/sysstat/sa1 1 1)", 2),
    Template("nginx", 6, "{ip} GET /api/v1/subscribers/{b} 200 {ms} ms", 12),
    Template("nginx", 6, "{ip} POST /api/v1/sessions 201 {ms} ms", 8),
    Template("nginx", 4, "upstream response is buffered to a temporary file, client: {ip}", 0.5),
    Template("app", 6, "session {b} established for cell {a} in {ms} ms", 10),
    Template("app", 6, "handover of session {b} to cell {a} completed", 6),
    Template("app", 4, "slow query: {ms} ms on table subscribers", 0.5),
    Template("app", 3, "request {b} failed: upstream timed out after {ms} ms", 0.2),
    Template("kernel", 6, "eth0: link is up, {a} Gbps full duplex", 0.05),
    Template("kernel", 4, "CPU{a}: Core temperature above threshold, cpu clock throttled", 0.05),
    # the following come only with incidents
    Template("app", 3, "connection to database lost, retry {a} in {ms} ms"),
    Template("kernel", 3, "EXT4-fs error (device vda{a}): ext4_find_entry: reading directory lblock {b}"),
)
STORM, NEW = len(TEMPLATES) - 2, len(TEMPLATES) - 1


class LogLines:
    """Log lines at any steps."""

    def __init__(self, config: SimulatorConfig, topology: Topology) -> None:
        self._config, self._topology, self._origin = config, topology, config.origin
        self._noise = Noise(config.seed)
        weights = np.array([template.weight for template in TEMPLATES])
        self._mix = np.cumsum(weights / weights.sum())
        self._program = pl.Series([template.program for template in TEMPLATES])
        self._severity = pl.Series([template.severity for template in TEMPLATES])
        self._text = pl.Series([template.text for template in TEMPLATES])

    def at(
        self, steps: Ints, load: Floats, heard: NDArray[np.bool_], incidents: Sequence[InjectedIncident]
    ) -> tuple[Ints, Ints, Floats]:
        """The lines written during ``steps``.

        Returns:
            For each line its machine and the index of its step; and, with shape (lines, 4), the milliseconds into the
            step, the template, and two uniform parameters.
        """
        each = np.arange(self._topology.size)[:, None]
        mean = self._config.log_rate * (0.4 + 1.7 * load)
        parts = [self._drawn("usual", each, steps, np.where(heard, mean, 0), None)]
        time = self._origin + steps * self._config.step
        for incident in incidents:
            if incident.type in ("log_storm", "new_message"):
                first, last = np.searchsorted(time, (incident.start, incident.end))
                template, size = (STORM, incident.size) if incident.type == "log_storm" else (NEW, 1.0)
                one, span = np.array([[incident.entity]]), slice(first, last)
                if first < last:
                    means = np.where(heard[incident.entity, span], size, 0)[None, :]
                    machine, step, what = self._drawn(incident.type, one, steps[span], means, template)
                    parts.append((machine, step + first, what))
        machine, step, what = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((step, machine))  # by machine and step, whatever the chunk
        return machine[order], step[order], what[order]

    def _drawn(
        self, stream: str, machines: Ints, steps: Ints, mean: Floats, template: int | None
    ) -> tuple[Ints, Ints, Floats]:
        number = self._poisson(self._noise.uniform(f"{stream} lines", machines, steps), mean)
        row, step = np.nonzero(number)
        times = number[row, step]
        row, step = np.repeat(row, times), np.repeat(step, times)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        machine = machines[row, 0]
        counter = steps[step] * _MOST + nth
        draw = [self._noise.uniform(f"{stream} {what}", machine, counter) for what in ("at", "which", "a", "b")]
        which = np.searchsorted(self._mix, draw[1]) if template is None else np.full(len(row), template)
        at = np.floor(draw[0] * self._config.step)
        return machine, step, np.column_stack([at, which, draw[2], draw[3]]).reshape(-1, 4)

    @staticmethod
    def _poisson(luck: Floats, mean: Floats) -> Ints:
        """Poisson counts, by inversion for small means, by the normal distribution for large ones."""
        chance = np.exp(-mean)
        below, number = chance.copy(), np.zeros(mean.shape, dtype=np.int64)
        for k in range(1, 25):
            more = luck > below
            if not more.any():
                break
            number += more
            chance = chance * mean / k
            below += chance
        large = mean > 12
        if large.any():
            from scipy.special import ndtri  # noqa: PLC0415  SciPy takes long to load, and few rates are so high

            number[large] = np.rint(mean[large] + np.sqrt(mean[large]) * ndtri(luck[large])).astype(np.int64)
        return np.clip(number, 0, _MOST)

    def frame(self, arrived: tuple[Ints, Ints, Ints, Floats], names: pl.Series) -> pl.DataFrame:
        """The lines as columns of `Log`, and ``arrival``."""
        arrival, entity, time, what = arrived
        which = what[:, 1].astype(np.int64)
        a, b = what[:, 2], what[:, 3]
        fields = {
            "{a}": pl.Series((a * 40).astype(np.int64)),
            "{b}": pl.Series((b * 64_511).astype(np.int64) + 1024),
            "{ip}": pl.Series((a * 250).astype(np.int64)),
            "{ms}": pl.Series(np.rint(5 * np.exp(3 * b)).astype(np.int64)),
        }
        text = pl.col("message")
        for mark in ("{a}", "{b}", "{ms}"):
            text = text.str.replace(mark, pl.col(mark).cast(pl.String), literal=True)
        address = pl.format("10.20.{}.{}", pl.col("{ip}"), pl.col("{b}") % 250)
        text = text.str.replace("{ip}", address, literal=True)
        return pl.DataFrame(
            {
                "time": time,
                "entity": names.gather(entity),
                "program": self._program.gather(which),
                "severity": self._severity.gather(which),
                "message": self._text.gather(which),
                "arrival": arrival,
                **fields,
            }
        ).select("time", "entity", "program", "severity", text, "arrival")
