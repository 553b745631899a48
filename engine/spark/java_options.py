"""Options of JVMs: of Spark's, in this process, on a cluster, in pods of Kubernetes; and when any JVM optimizes.

Decision 0065 says what each of those that hold less memory is worth.
"""

from __future__ import annotations

from typing import Literal

When = Literal["usual", "never"]
"""When a JVM optimizes what runs often."""

OPTIMIZES: dict[When, tuple[str, ...]] = {"usual": (), "never": ("-XX:TieredStopAtLevel=1",)}
"""Options by when a JVM optimizes: as JVMs do, or never; it always compiles what runs often.

When several queries or servers start at once, their optimizing compilers would take a third of the processor from them.
"""
Memory = Literal["usual", "small"]
"""How much memory is held for speed."""

COLLECTS: dict[Memory, tuple[str, ...]] = {
    "usual": ("-XX:+UseParallelGC",),
    "small": (
        "-XX:+UseSerialGC",
        "-XX:MinHeapFreeRatio=10",
        "-XX:MaxHeapFreeRatio=30",
        "-XX:ReservedCodeCacheSize=64m",
        "-XX:MaxDirectMemorySize=128m",
    ),
}
"""Options of Spark's JVM in this process by how much memory is held; ``small`` gives back what is free."""
_TASKS = (
    "-Xss8m",
    "-Darrow.enable_unsafe_memory_access=true",  # Arrow checks each access to a buffer otherwise
    "-Darrow.enable_null_check_for_get=false",
)
EXECUTOR = (*COLLECTS["usual"], *_TASKS)
"""Of the JVMs of Spark that only execute tasks."""


def driver_options(optimizes: When, memory: Memory) -> tuple[str, ...]:
    """Of the JVM in which the driver of Spark is, and on one machine the tasks."""
    return (*COLLECTS[memory], *_TASKS, *OPTIMIZES[optimizes])
