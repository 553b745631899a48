"""Money a month, for prices that the user gives; there are none built in."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.plan.needs import Need, Plan

GIB = 2**30


@dataclass(frozen=True)
class Prices:
    """Prices a month, in any one currency.

    Args:
        core: Of a core.
        gib: Of a GiB of memory.
        disk: Of a GiB of disk.
    """

    core: float = 0.0
    gib: float = 0.0
    disk: float = 0.0

    @property
    def given(self) -> bool:
        """Whether any price is known."""
        return bool(self.core or self.gib or self.disk)

    def of(self, need: Need, utilization: float) -> float:
        """Money a month of a part; its cores are paid with the reserve.

        >>> Prices(core=10, gib=2, disk=0.1).of(Need("sink", cores=3, memory=2**30, disk=10 * 2**30), 0.5)
        63.0
        """
        cores = need.cores / utilization * self.core
        return cores + need.memory / GIB * self.gib + need.disk / GIB * self.disk

    def total(self, plan: Plan) -> float:
        """Money a month of all parts."""
        return sum(self.of(need, plan.machines.utilization) for need in plan.needs)
