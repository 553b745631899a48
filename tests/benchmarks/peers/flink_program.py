"""Runs statements of Flink SQL until it is ended; Flink's own environment has the Python that runs it.

What is to be run comes as JSON on the standard input: ``options`` of Flink by name, and ``statements``, of which the
last is an ``INSERT`` that does not end.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Runs them."""
    from pyflink.common import Configuration  # noqa: PLC0415  that environment only has it
    from pyflink.table import EnvironmentSettings, TableEnvironment  # noqa: PLC0415

    given = json.load(sys.stdin)
    options = Configuration()
    for name, value in given["options"].items():
        options.set_string(name, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(options).build()
    table = TableEnvironment.create(settings)
    *before, last = given["statements"]
    for statement in before:
        table.execute_sql(statement)
    table.execute_sql(last).wait()


if __name__ == "__main__":
    main()
