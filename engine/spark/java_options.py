"""Options of JVMs: of Spark's, in this process, on a cluster, in pods of Kubernetes; and when any JVM optimizes."""

from __future__ import annotations

from typing import Literal

When = Literal["usual", "never"]
"""When a JVM optimizes what runs often."""

OPTIMIZES: dict[When, tuple[str, ...]] = {"usual": (), "never": ("-XX:TieredStopAtLevel=1",)}
"""Options by when a JVM optimizes: as JVMs do, or never; it always compiles what runs often.

When several queries or servers start at once, their optimizing compilers would take a third of the processor from them.
"""
EXECUTOR = (
    "-XX:+UseParallelGC",
    "-Xss8m",
    "-Darrow.enable_unsafe_memory_access=true",  # Arrow checks each access to a buffer otherwise
    "-Darrow.enable_null_check_for_get=false",
)
"""Of the JVMs of Spark that only execute tasks; the driver's has `OPTIMIZES` too."""
