"""What a run of the oracle compared, counted."""

from collections import Counter

import kproto
from tests.support.seeds import seed
from tests.support.values import FieldCoverage

__all__ = ["Tally"]


class Tally:
    """Filled by the tests, printed when the run ends."""

    def __init__(self) -> None:
        self.coverage = FieldCoverage()
        self.values = 0
        self.by_reference = 0
        self.pairs: set[tuple[str, int]] = set()
        """Our (message, version) that at least one release's Java was compared on."""
        self.release_pairs: Counter[str] = Counter()
        """Release -> pairs compared with it."""
        self.comparisons: Counter[str] = Counter()
        """Direction -> answers of Java compared."""
        self.rewrites: Counter[str] = Counter()
        """Outcome -> values carried to another version with it."""
        self.messages: set[str] = set()
        """Messages whose comparison ran to its end."""

    def lines(self) -> list[str]:
        directions = ", ".join(f"{count} {name}" for name, count in self.comparisons.items())
        releases = ", ".join(f"{count} with {name}" for name, count in self.release_pairs.items())
        rewrites = ", ".join(f"{count} {name}" for name, count in self.rewrites.items())
        return [
            f"{kproto.engine} engine, seed {seed()} (KPROTO_SEED)",
            f"{len(self.messages)} messages, {len(self.pairs)} (message, version): {releases}",
            f"{self.values} values; answers compared: {directions}",
            f"{self.by_reference} of the values also through kproto.reference",
            f"fields: {self.coverage}",
            f"to another version: {rewrites}",
        ]
