"""Options of JVMs: of Spark's, in this process, on a cluster, in pods of Kubernetes; and when any JVM optimizes."""

from __future__ import annotations

from typing import Literal

When = Literal["late", "never"]
"""When a JVM optimizes what runs often."""

OPTIMIZES: dict[When, tuple[str, ...]] = {
    "late": tuple(
        f"-XX:Tier4{what}={10 * usual}"
        for what, usual in (
            ("InvocationThreshold", 5_000),
            ("MinInvocationThreshold", 600),
            ("CompileThreshold", 15_000),
            ("BackEdgeThreshold", 40_000),
        )
    ),
    "never": ("-XX:TieredStopAtLevel=1",),
}
"""Options by when a JVM optimizes: after ten times as many runs as usual, or never; it always compiles what runs often.

When several queries or servers start at once, their optimizing compilers would take a third of the processor from them.
"""
EXECUTOR = ("-XX:+UseParallelGC", "-Xss8m")
"""Of the JVMs of Spark that only execute tasks; the driver's has `OPTIMIZES` too."""
