"""The detectors: turn features of metrics and of logs into verdicts, the novelties."""
