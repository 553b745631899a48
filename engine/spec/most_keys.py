"""How many keys a source may bring into a job, or an operator take in, so that who invents keys does not fill it."""

from __future__ import annotations

from dataclasses import dataclass

CODE = "TOO_MANY_KEYS"


@dataclass(frozen=True)
class MostKeys:
    """The most keys of a source, which must be partitioned by the first column of the key, or of an operator.

    Keys count from their first record on, in the order of the log of their partition, or of event time, so that the
    same ones are accepted whatever the micro-batches. Records of a key that came when there were as many are refused.

    Args:
        key: The columns of the key.
        alike: The most keys with one value in the first column.
        partition: The most keys of one partition, or slot.
        forget: A key without a record for so long in event time no longer counts, or a seventh later at most;
            milliseconds. 0: keys count for ever.
    """

    key: tuple[str, ...]
    alike: int
    partition: int
    forget: int = 0

    def reason(self, key: tuple[str, ...]) -> str:
        """Why the records of a key are refused.

        >>> MostKeys(("host", "metric"), 10, 100).reason(("a", "cpu"))
        "a new host and metric, such as 'a', 'cpu'; accepted: 10 with the same host, 100 in a partition, and known ones"
        >>> MostKeys(("host",), 100, 100).reason(("a",))
        "a new host, such as 'a'; accepted: 100 in a partition, and known ones"
        """
        named = ", ".join(f"{part[:100]!r}" for part in key)
        alike = f"{self.alike:,} with the same {self.key[0]}, " if self.alike < self.partition else ""
        accepted = f"{alike}{self.partition:,} in a partition, and known ones"
        return f"a new {' and '.join(self.key)}, such as {named}; accepted: {accepted}"
