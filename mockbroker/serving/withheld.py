"""Stand-ins for a broker that is asked what it would say, while something else is said: a journal
that does not hear the answer, and a memory that keeps none. For ``faulting``.
"""

from __future__ import annotations

from typing import Any

from kproto.journal import Entry, Journal
from mockbroker.apis import Session

__all__ = ["Forgetful", "Withheld"]


class Withheld(Journal):
    """Lets everything through to the journal but the response."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(max_entries=1)
        self._journal = journal
        self.version: int | None = None

    def record(self, *fields: Any, **named: Any) -> Entry:
        if fields[3] == "response":
            self.version = fields[6]
            return super().record(*fields, **named)
        return self._journal.record(*fields, **named)


class Forgetful:
    """In place of known answers: the broker is asked each time, and nothing is remembered."""

    def answer_one(self, _session: Session, _frame: bytes) -> None:
        return None

    def remember(self, *_answer: object) -> None:
        return None
