"""When a machine's data are read, what its clock says, and when they arrive: jitter, skew, disorder, lateness, loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datagen.simulator.config import SimulatorConfig
from datagen.simulator.noise import Noise

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Arrivals:
    """For each machine and step, shape (machines, steps): event time and arrival (epoch ms), and whether it arrives."""

    time: Ints
    arrival: Ints
    arrives: NDArray[np.bool_]


class Delivery:
    """The simulated way from the machines to Kafka."""

    def __init__(self, config: SimulatorConfig) -> None:
        self._config, self._origin, self._noise = config, config.origin, Noise(config.seed)
        self._machines = np.arange(config.size)[:, None]
        self._phase = (self._noise.uniform("phase of scrape", self._machines) * 0.95 * config.step).astype(np.int64)
        wrong = self._noise.uniform("skewed", self._machines) < config.skewed
        by = 2 * self._noise.uniform("skew", self._machines) - 1
        self._skew = np.where(wrong, by * config.skew, 0).astype(np.int64)

    def carry(self, steps: Ints, stream: str, phased: bool = True) -> Arrivals:
        """The arrivals of data that are read at ``steps``.

        Args:
            steps: The steps.
            stream: Name of the stream (metrics, logs), which has random numbers of its own.
            phased: Whether each machine reads at its own instant within the step; otherwise at its beginning.
        """
        config, uniform = self._config, self._noise.uniform
        read = self._origin + steps * config.step + (self._phase if phased else np.zeros_like(self._phase))
        delay = 15 + 40 * np.exp(0.8 * self._noise.normal(f"{stream} delay", self._machines, steps))
        luck = uniform(f"{stream} luck", self._machines, steps)
        more = uniform(f"{stream} more", self._machines, steps)
        delay += np.where(luck < config.delayed, 1_000 + 4_000 * more, 0)
        delay += np.where(luck > 1 - config.late, config.late_by * more, 0)
        arrives = uniform(f"{stream} lost", self._machines, steps) >= config.missing
        return Arrivals(read + self._skew, read + delay.astype(np.int64), arrives)
