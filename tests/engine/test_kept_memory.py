"""What a process has freed goes back to the system, although other memory lies between it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
from engine.kept_memory import give_back, keep_little

if "little" in sys.argv:
    keep_little()

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

del (large := [np.ones(4_000_000)])[:]  # glibc would now put blocks of up to 32 MB into its heap
before, kept, columns = resident(), [], []
for n in range(100):
    columns.append(np.ones(250_000 + n))  # 2 MB
    kept.append(bytearray(200_000))  # what goes on living lies between them
del columns
if "back" in sys.argv:
    give_back()
print(resident() - before - 200_000 * len(kept))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it is glibc that keeps memory")
@pytest.mark.parametrize("how", ["little", "back"])
def test_columns_that_were_freed_go_back_to_the_system(how: str) -> None:
    """The boundary: 200 MB in columns of 2 MB, each of which has something behind it that lives."""
    asked = [sys.executable, "-c", PROGRAM]
    kept, freed = (
        int(subprocess.run([*asked, *more], capture_output=True, text=True, timeout=60, check=True).stdout)
        for more in ([], [how])
    )
    assert kept > 100_000_000, "glibc keeps them by itself, or this test shows nothing"
    assert freed < 20_000_000
