"""Error codes of the sources that feed the pipeline: name, what it means, what to do."""

from __future__ import annotations

import pipelines.contracts.codes  # noqa: F401  what is beneath
from engine.spec.errors import section

source = section("Input")
source("SIMULATOR_INVALID", "an option of the simulator is out of range, or a fast run has no end", "see the message")
source("START_AHEAD", "with this `--start` event time would run ahead of the clock", "an earlier start")
source("DELIVERY_FAILED", "Kafka refused records, or did not answer when the command was to end", "see the reason")
source("BUFFER_UNUSABLE", "the agent's buffer on disk cannot be written, or another agent has it", "see the message")
source("NOTHING_TO_JUDGE", "`play`: all samples are too late, or too far ahead, for the pipeline", "see the message")
