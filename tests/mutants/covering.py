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
)
"""Left out of the sample: what runs only with servers or on a terminal."""

TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "engine/columns",
        (
            "tests/engine/test_aggregates.py",
            "tests/engine/operators/test_operators_match_reference.py",
            "tests/engine/test_windows_match_reference.py",
        ),
    ),
    (
        "engine/formats",
        (
            "tests/engine/test_json_lines.py",
            "tests/engine/test_json_records.py",
            "tests/engine/test_columnar.py",
            "tests/pipelines/formats",
        ),
    ),
    (
        "engine/spec",
        (
            "tests/engine/test_json_records.py",
            "tests/engine/test_settings.py",
            "tests/engine/test_records.py",
            "tests/engine/test_built_wrong.py",
            "tests/engine/test_durations.py",
            "tests/engine/test_sources.py",
            "tests/engine/test_time_columns.py",
            "tests/engine/test_time.py",
        ),
    ),
    (
        "engine/state",
        (
            "tests/engine/operators/test_state.py",
            "tests/engine/test_kill_points.py",
            "tests/engine/test_continuation.py",
            "tests/engine/test_late_counters.py",
        ),
    ),
    (
        "engine/runtime",
        (
            "tests/engine/test_explain.py",
            "tests/engine/test_pieces_of_a_batch.py",
            "tests/engine/test_sources.py",
            "tests/engine/test_json_records.py",
            "tests/engine/test_continuation.py",
            "tests/engine/test_time.py",
            "tests/engine/test_time_columns.py",
            "tests/engine/test_missing_values.py",
            "tests/engine/operators/test_state.py",
        ),
    ),
    (
        "engine/aggregates",
        (
            "tests/engine/test_aggregates.py",
            "tests/engine/test_windows_match_reference.py",
        ),
    ),
    (
        "engine/watermarks",
        (
            "tests/engine/test_watermarks.py",
            "tests/engine/test_watermarks_match_reference.py",
        ),
    ),
    (
        "engine/windows",
        (
            "tests/engine/test_windows.py",
            "tests/engine/test_general_windows.py",
            "tests/engine/test_final_panes.py",
            "tests/transcripts/test_transcripts.py",
        ),
    ),
    (
        "engine/triggers",
        (
            "tests/engine/test_final_panes.py",
            "tests/transcripts/test_transcripts.py",
        ),
    ),
    (
        "engine/vectorized/windows",
        (
            "tests/engine/test_late_counters.py",
            "tests/engine/test_lateness_limit.py",
            "tests/engine/test_final_panes.py",
            "tests/engine/test_shared_windows.py",
            "tests/engine/test_general_windows.py",
            "tests/engine/test_missing_values.py",
            "tests/engine/test_kill_points.py",
            "tests/engine/test_windows_match_reference.py",
            "tests/transcripts/test_transcripts.py",
        ),
    ),
    (
        "engine/vectorized",
        (
            "tests/engine/operators",
            "tests/transcripts/operators",
            "tests/engine/test_kill_points.py",
            "tests/engine/test_missing_values.py",
        ),
    ),
    (
        "engine/operators",
        (
            "tests/engine/test_built_wrong.py",
            "tests/engine/test_settings.py",
            "tests/engine/operators",
            "tests/transcripts/operators",
            "tests/engine/test_final_panes.py",
            "tests/engine/test_general_windows.py",
        ),
    ),
    (
        "engine/reference/aggregates",
        ("tests/engine/test_aggregates.py", "tests/transcripts/test_transcripts.py"),
    ),
    (
        "engine/reference/rates",
        ("tests/engine/test_aggregates.py", "tests/engine/test_windows_match_reference.py"),
    ),
    (
        "engine/reference/windows",
        ("tests/engine/test_time.py", "tests/engine/test_final_panes.py", "tests/transcripts/test_transcripts.py"),
    ),
    ("engine/reference/triggers", ("tests/engine/test_final_panes.py", "tests/transcripts/test_transcripts.py")),
    ("engine/reference", ("tests/transcripts/operators", "tests/engine/operators", "tests/transcripts")),
    (
        "engine",
        (
            "tests/engine",
            "tests/transcripts",
            "tests/pipelines/formats",
        ),
    ),
    ("models/series/past", ("tests/pipelines/contracts/test_explanations.py", "tests/models/test_contracts.py")),
    (
        "models/machine/joined",
        (
            "tests/models/test_joined.py",
            "tests/pipelines/detectors/test_influencers.py",
            "tests/pipelines/detectors/test_incidents.py",
        ),
    ),
    (
        "models/templates",
        (
            "tests/models/test_by_hand.py",
            "tests/models/test_constants_in_use.py",
            "tests/models/test_templates.py",
            "tests/pipelines/detectors/test_logs.py",
        ),
    ),
    (
        "models/machine",
        (
            "tests/models/test_blocks.py",
            "tests/models/test_constants_in_use.py",
            "tests/models/test_multivariate.py",
            "tests/models/test_contracts.py",
        ),
    ),
    (
        "models/regimes",
        (
            "tests/models/test_by_hand.py",
            "tests/models/test_silence.py",
            "tests/models/test_regimes.py",
            "tests/models/test_time_constants.py",
            "tests/models/test_contracts.py",
        ),
    ),
    (
        "models/families",
        (
            "tests/models/test_by_hand.py",
            "tests/models/test_families.py",
            "tests/models/test_counts.py",
            "tests/models/test_suited.py",
            "tests/models/test_time_constants.py",
        ),
    ),
    (
        "models/evidence",
        (
            "tests/models/test_by_hand.py",
            "tests/models/test_frozen.py",
            "tests/models/test_models.py",
            "tests/models/test_lingering.py",
            "tests/models/test_repeats.py",
            "tests/models/test_contracts.py",
        ),
    ),
    (
        "models/experts",
        (
            "tests/models/test_accepting.py",
            "tests/models/test_models.py",
            "tests/models/test_time_constants.py",
            "tests/models/test_contracts.py",
            "tests/models/test_peers.py",
        ),
    ),
    (
        "models",
        (
            "tests/pipelines/contracts/test_explanations.py",
            "tests/models/test_constants_in_use.py",
            "tests/models/test_frozen.py",
            "tests/models/test_models.py",
            "tests/models/test_contracts.py",
            "tests/models/test_regimes.py",
            "tests/models/test_peers.py",
            "tests/models/test_time_constants.py",
        ),
    ),
    (
        "pipelines/jobs/detectors/logs",
        (
            "tests/pipelines/detectors/test_logs.py",
            "tests/pipelines/detectors/test_late_logs.py",
        ),
    ),
    (
        "pipelines/jobs/detectors/metrics/peers",
        (
            "tests/pipelines/detectors/test_peers.py",
            "tests/pipelines/detectors/test_detection.py",
        ),
    ),
    (
        "pipelines/jobs/detectors/metrics/absence",
        (
            "tests/pipelines/detectors/test_absence.py",
            "tests/pipelines/detectors/test_detection.py",
        ),
    ),
    (
        "pipelines/jobs/detectors/metrics",
        (
            "tests/pipelines/detectors/test_detection.py",
            "tests/pipelines/detectors/test_influencers.py",
            "tests/pipelines/contracts/test_explanations.py",
            "tests/pipelines/detectors/test_late_windows.py",
            "tests/pipelines/detectors/test_peers.py",
            "tests/pipelines/detectors/test_absence.py",
            "tests/pipelines/detectors/test_rules.py",
            "tests/pipelines/detectors/test_incidents.py",
        ),
    ),
    (
        "pipelines/jobs/detectors",
        (
            "tests/pipelines/detectors/test_operator.py",
            "tests/pipelines/detectors/test_control_messages.py",
            "tests/pipelines/detectors/test_correction_journal.py",
            "tests/pipelines/detectors/test_rules.py",
            "tests/pipelines/detectors",
        ),
    ),
    ("pipelines/jobs/templates", ("tests/pipelines/templates",)),
    ("pipelines/jobs/sink", ("tests/pipelines/sink",)),
    (
        "pipelines/jobs",
        (
            "tests/pipelines/contracts/test_schemas.py",
            "tests/pipelines/test_chain.py",
            "tests/pipelines/contracts",
            "tests/pipelines/runtime",
        ),
    ),
    (
        "pipelines/query",
        (
            "tests/pipelines/query",
            "tests/pipelines/detectors/test_rules.py",
        ),
    ),
    (
        "pipelines/contracts/explanations",
        (
            "tests/pipelines/contracts/test_explanations.py",
            "tests/pipelines/detectors/test_detection.py",
            "tests/pipelines/detectors/test_logs.py",
        ),
    ),
    (
        "pipelines/contracts",
        (
            "tests/pipelines/contracts",
            "tests/test_codes.py",
            "tests/pipelines/formats",
            "tests/pipelines/detectors/test_control_messages.py",
            "tests/pipelines/detectors/test_rules.py",
        ),
    ),
    (
        "pipelines",
        (
            "tests/pipelines",
            "tests/test_codes.py",
        ),
    ),
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
