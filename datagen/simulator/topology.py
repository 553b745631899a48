"""The machines of a site: hosts first, then the VMs on them, then spare VMs that only an incident brings up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datagen.simulator.catalogue import Role
from pipelines.contracts.records import Placement


class Topology:
    """Names and places. Indices: ``0 … hosts-1`` hosts, then ``vms`` VMs, then ``spare`` VMs.

    >>> site = Topology(hosts=2, vms=4, spare=1)
    >>> site.names
    ['host-000', 'host-001', 'vm-00000', 'vm-00001', 'vm-00002', 'vm-00003', 'vm-00004']
    >>> site.home.tolist(), site.vms_of(1).tolist()
    ([0, 0, 1, 1, -1], [4, 5])
    """

    def __init__(self, hosts: int, vms: int, spare: int) -> None:
        self.hosts, self.vms, self.spare = hosts, vms, spare
        self.names = [f"host-{i:03d}" for i in range(hosts)] + [f"vm-{i:05d}" for i in range(vms + spare)]
        self.home: NDArray[np.int64] = np.full(vms + spare, -1, dtype=np.int64)
        self.home[:vms] = np.arange(vms) * hosts // max(vms, 1)
        self.nominal: NDArray[np.int64] = np.maximum(np.bincount(self.home[:vms], minlength=hosts), 1)

    @property
    def size(self) -> int:
        """Machines, spare ones included."""
        return len(self.names)

    def role(self, entity: int) -> Role:
        """What a machine is."""
        return Role.HOST if entity < self.hosts else Role.VM

    def placed(self, time: int) -> list[Placement]:
        """Which VM runs on which host at the start.

        Args:
            time: Event time from which on it holds, epoch ms.
        """
        homes = self.home.tolist()
        return [self.placement(vm + self.hosts, host, time) for vm, host in enumerate(homes) if host >= 0]

    def placement(self, vm: int, host: int, time: int, before: int | None = None) -> Placement:
        """That a VM runs on a host from an event time on, and on which host it ran before."""
        moved_from = None if before is None else self.names[before]
        return Placement(entity=self.names[vm], parent=self.names[host], moved_from=moved_from, time=time)

    def vms_of(self, host: int) -> NDArray[np.int64]:
        """Indices of the VMs that are on a host at the start."""
        return np.flatnonzero(self.home == host) + self.hosts
