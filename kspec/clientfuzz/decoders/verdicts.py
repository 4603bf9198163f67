"""What a decoder made of a frame, in words that two decoders can be compared by."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Outcome", "Verdict"]

Outcome: TypeAlias = Literal[
    "accepted", "rejected", "gave up", "hung", "died", "swelled", "not asked"
]
"""``gave up``: by a time-out of its own, which is in order where a frame is never finished;
``hung``: it had to be ended; ``died``: its process ended, or a codec of ours raised what it must
not; ``swelled``: its memory grows frame by frame. ``not asked``: it does not have the message, or
cannot be shown this kind of damage."""


class Verdict(NamedTuple):
    """``value`` is what an accepted frame means, in one canonical form (a codec's: the bytes it is
    written back as; a client's: what its caller was given); ``text`` is for people, and for the
    list of expected differences."""

    outcome: Outcome
    value: str = ""
    text: str = ""

    @property
    def asked(self) -> bool:
        return self.outcome != "not asked"

    def agrees_with(self, other: Verdict) -> bool:
        """Whether both say the same of the frame. Texts may differ, and who does not tell a value
        is not asked for it."""
        if self.outcome != other.outcome:
            return False
        return self.value == other.value or not (self.value and other.value)
