"""What a decoder made of a frame, in a form that two decoders can be compared by."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Outcome", "Verdict"]

Outcome: TypeAlias = Literal[
    "accepted", "rejected", "gave up", "hung", "died", "swelled", "not asked"
]
"""``gave up``: its own timeout, which is correct if a frame is never complete. ``hung``: it had to
be killed. ``died``: its process ended, or a codec of ours raised a wrong exception. ``swelled``:
its memory grows with each frame. ``not asked``: it lacks the message, or cannot be given this kind
of mutation."""


class Verdict(NamedTuple):
    """``value`` is the meaning of an accepted frame in a canonical form: for a codec the bytes it
    writes back, for a client the result. ``text`` is for people and for the list of expected
    differences."""

    outcome: Outcome
    value: str = ""
    text: str = ""

    @property
    def applicable(self) -> bool:
        return self.outcome != "not asked"

    def agrees_with(self, other: Verdict) -> bool:
        """Return whether both have the same verdict. Texts may differ, and an empty value matches
        any."""
        if self.outcome != other.outcome:
            return False
        return self.value == other.value or not (self.value and other.value)
