"""How many keys a source may bring into the state of a job, so that who invents keys does not fill it."""

from __future__ import annotations

from dataclasses import dataclass

CODE = "TOO_MANY_KEYS"


@dataclass(frozen=True)
class MostKeys:
    """The most keys of a source, which must be partitioned by the first column of the key.

    Keys count from their first record on, in the order of the log of their partition, so that the same ones are
    accepted whatever the micro-batches. Records of a key that came when there were as many are refused.

    Args:
        key: The columns of the key.
        alike: The most keys with one value in the first column.
        partition: The most keys of one partition.
    """

    key: tuple[str, ...]
    alike: int
    partition: int

    def reason(self, key: tuple[str, ...]) -> str:
        """Why the records of a key are refused.

        >>> MostKeys(("host", "metric"), 10, 100).reason(("a", "cpu"))
        "a new host and metric, such as 'a', 'cpu'; accepted: 10 with the same host, 100 in a partition, and known ones"
        """
        named = ", ".join(f"{part[:100]!r}" for part in key)
        accepted = f"{self.alike:,} with the same {self.key[0]}, {self.partition:,} in a partition, and known ones"
        return f"a new {' and '.join(self.key)}, such as {named}; accepted: {accepted}"
