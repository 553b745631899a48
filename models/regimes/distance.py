"""How far a value lies from the last accepted normal: whether it is abnormal now, however long it has been so."""

from __future__ import annotations

from models.evidence.score import scored
from models.kernels import kernel
from models.regimes.challenger import heavy
from models.regimes.config import RegimesConfig
from models.regimes.reference import Expected


@kernel
def away(expected: Expected) -> float:
    """What speaks against a value being normal, in nats: the density of what is expected over its own, as logarithm.

    Args:
        expected: What the reference expected of the value; it stands still while an incident is open.

    >>> [round(away(Expected(z, z, 1.0, 0.1, 0.0, 1.0)), 2) for z in (0.0, 2.0, 4.0, 10.0)]
    [0.0, 1.73, 4.02, 8.15]
    """
    return 0.0 - heavy(expected.off / expected.scale)


@kernel
def state_score(config: RegimesConfig, nats: float) -> float:
    """The same on the scale from 0 to 100: 50 at `RegimesConfig.trigger` standard deviations, 100 never quite.

    >>> from models.records import constants
    >>> config = constants(all=RegimesConfig()).all
    >>> [round(state_score(config, nats), 1) for nats in (0.0, 1.73, 4.02, 8.15)]
    [0.0, 30.1, 50.0, 66.9]
    """
    return scored(nats, -heavy(config.trigger))
