"""A telco site of hosts and VMs: correlated metrics, logs, incidents with ground truth; a function of its config."""

from datagen.simulator.config import SimulatorConfig, demo, resolve
from datagen.simulator.incidents import InjectedIncident
from datagen.simulator.simulation import Summary, simulate
from datagen.simulator.site import frames, logs

__all__ = ["InjectedIncident", "SimulatorConfig", "Summary", "demo", "frames", "logs", "resolve", "simulate"]
