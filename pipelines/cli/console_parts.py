"""What the console of a pipeline asks: the operator's messages, the detector's beliefs, versions, trials of rules."""

from __future__ import annotations

from typing import Any

from pipelines.cli.console_trials import ConsoleTrials
from pipelines.cli.console_versions import ConsoleVersions
from pipelines.cli.options import Overrides
from pipelines.cli.state_view import state_view
from pipelines.query.operator import Operator


def console_parts(overrides: Overrides) -> dict[str, Any]:
    """The arguments of `pipelines.runtime.watch.watching` that give the console these parts.

    Args:
        overrides: The values of the command line by dotted name, from which the settings were loaded.
    """
    return {
        "actions": Operator.of,
        "state_view": state_view,
        "versions": lambda settings: ConsoleVersions(lambda: settings, overrides),
        "trials": lambda settings: ConsoleTrials(lambda: settings, overrides),
    }
