"""Which fast tests judge a change of which module, and which modules only the tests with servers can judge."""

from __future__ import annotations

from pathlib import Path

PACKAGES = ("engine", "models", "pipelines")

SERVERS_ONLY = (
    "engine/spark/",
    "engine/kafka/",
    "engine/explain/",
    "engine/examples/",
    "engine/testing/",
    "pipelines/cli/",
    "pipelines/runtime/",
    "pipelines/evaluation/",
    "models/checks.py",
    "models/regimes/checks.py",
)
"""Left out of the sample: what runs only with servers or on a terminal, and what is itself a test."""

TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("engine/columns", ("tests/engine/test_aggregates.py", "tests/engine/operators/test_operators_match_reference.py")),
    (
        "engine/formats",
        ("tests/engine/test_json_lines.py", "tests/pipelines/normalize", "tests/engine/test_columnar.py"),
    ),
    ("engine/spec", ("tests/engine/test_settings.py", "tests/engine/test_records.py", "tests/engine")),
    ("engine/runtime", ("tests/engine/test_pieces_of_a_batch.py", "tests/engine/test_sources.py", "tests/engine")),
    ("engine/aggregates", ("tests/engine/test_aggregates.py", "tests/engine/test_windows_match_reference.py")),
    ("engine/watermarks", ("tests/engine/test_watermarks.py", "tests/transcripts")),
    ("engine/vectorized/windows", ("tests/engine/test_late_counters.py", "tests/engine", "tests/transcripts")),
    ("engine/vectorized", ("tests/engine/operators", "tests/transcripts/operators")),
    ("engine/operators", ("tests/engine/operators", "tests/transcripts/operators")),
    ("engine", ("tests/engine", "tests/transcripts", "tests/pipelines/normalize")),
    ("models/templates", ("tests/models/test_templates.py", "tests/pipelines/detect/test_logs.py")),
    ("models/multivariate", ("tests/models/test_multivariate.py", "tests/models/test_contracts.py")),
    (
        "models/regimes",
        ("tests/models/test_regimes.py", "tests/models/test_time_constants.py", "tests/models/test_contracts.py"),
    ),
    (
        "models/families",
        (
            "tests/models/test_families.py",
            "tests/models/test_counts.py",
            "tests/models/test_suited.py",
            "tests/models/test_time_constants.py",
        ),
    ),
    (
        "models/evidence",
        (
            "tests/models/test_models.py",
            "tests/models/test_lingering.py",
            "tests/models/test_repeats.py",
            "tests/models/test_contracts.py",
        ),
    ),
    (
        "models/experts",
        (
            "tests/models/test_models.py",
            "tests/models/test_time_constants.py",
            "tests/models/test_contracts.py",
            "tests/models/test_peers.py",
        ),
    ),
    (
        "models",
        (
            "tests/models/test_models.py",
            "tests/models/test_contracts.py",
            "tests/models/test_regimes.py",
            "tests/models/test_peers.py",
            "tests/models/test_time_constants.py",
        ),
    ),
    ("pipelines/jobs/detect/logs", ("tests/pipelines/detect/test_logs.py",)),
    ("pipelines/jobs/detect", ("tests/pipelines/detect", "tests/pipelines/contracts")),
    ("pipelines/jobs/mine_logs", ("tests/pipelines/mine_logs",)),
    ("pipelines/jobs/index", ("tests/pipelines/index",)),
    ("pipelines/query", ("tests/pipelines/query", "tests/pipelines/detect/test_rules.py")),
    ("pipelines/contracts", ("tests/pipelines/contracts", "tests/pipelines/detect", "tests/test_codes.py")),
    ("pipelines", ("tests/pipelines", "tests/test_codes.py")),
)
"""Beginning of a module's path, and the tests that judge it, the nearest first; the first entry that fits holds."""


def modules(root: Path) -> list[str]:
    """The files that mutants are made of, relative to the repository."""
    files = (file for package in PACKAGES for file in (root / package).rglob("*.py"))
    names = sorted(file.relative_to(root).as_posix() for file in files)
    return [name for name in names if not name.startswith(SERVERS_ONLY) and not name.endswith("codes.py")]


def tests(root: Path, module: str) -> list[str]:
    """The tests of a module: its own doctests, and those of the table that are there."""
    for beginning, paths in TESTS:
        if module.startswith(beginning):
            return [module, *(path for path in paths if (root / path).exists())]
    raise ValueError(f"no tests are named for {module} in tests/mutants/covering.py")
