"""Drain's tree with bounded work for each line, whatever agents write."""

from __future__ import annotations

from collections.abc import Sequence

from drain3.drain import Drain, LogCluster

DEPTH, SIMILAR = 5, 0.5
"""Drain's parameters: the depth of its tree (number of words, program, first word), and the share of words that must
be equal for a line to match a template."""
MOST_WORDS = 128
"""How many words of a line are looked at; of the 512 characters that count, honest lines have some 90 at most."""
MOST_ALIKE = 128
"""How many templates of a leaf a line is compared with, the newest ones. They have as many words, and begin alike."""
_OTHER = "<*>"


class Tree(Drain):  # type: ignore[misc]  # drain3 tells no types
    """A tree whose leaves do not grow without bound.

    A line that matches none of the templates of a full leaf belongs to one template for all such lines of its program,
    and if the tree is full, of all programs.

    Args:
        most: How many templates it has before it is full.
    """

    def __init__(self, most: int) -> None:
        super().__init__(depth=DEPTH, sim_th=SIMILAR)
        self._most = most
        self._crowded = False

    def get_content_as_tokens(self, content: str) -> list[str]:
        """The words of a line."""
        return content.split()[:MOST_WORDS]

    def fast_match(
        self, cluster_ids: Sequence[int], tokens: list[str], sim_th: float, include_params: bool
    ) -> LogCluster | None:
        """The template among those of a leaf that a line matches best; ``None`` if it matches none."""
        self._crowded = len(cluster_ids) >= MOST_ALIKE
        found: LogCluster | None = super().fast_match(cluster_ids[-MOST_ALIKE:], tokens, sim_th, include_params)
        return found

    def add_log_message(self, content: str) -> tuple[LogCluster, str]:
        """The template of a line, and what has become of the template."""
        words = self.get_content_as_tokens(content)
        self._crowded = False
        known = self.tree_search(self.root_node, words, self.sim_th, False) is not None
        if not known and len(self.id_to_cluster) >= self._most:
            content = f"- {_OTHER}"
        elif not known and self._crowded:
            content = f"{words[0]} {_OTHER}"
        cluster, change = super().add_log_message(content)
        return cluster, change
