"""Simulates a telco site of hosts and VMs: correlated metrics, logs, and incidents with ground truth.

The output is a pure function of the config.
"""

from datagen.simulator.config import SimulatorConfig, demo, resolve
from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.simulation import Summary, simulate
from datagen.simulator.site import frames, logs

__all__ = ["InjectedIncident", "SimulatorConfig", "Summary", "demo", "frames", "logs", "resolve", "simulate"]
