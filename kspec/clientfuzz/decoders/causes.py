"""Who disagrees with whom, put so that a thousand frames with one cause are one finding.

Decoders come in two families. Codecs say what a frame is written back as, clients what a caller was
given: values are compared within a family, outcomes between them. A cause is who says what, the
kind of the mutation, and the shape of the path it hit: the path without its indices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from kspec.clientfuzz.comparison import Cause, shape
from kspec.clientfuzz.decoders.verdicts import Verdict

__all__ = ["OURS", "Dissent", "cause_of", "dissents"]

OURS: Final = ("pure", "native", "reference")
"""Our codecs, the first of which all others are held against."""

_GIVEN_UP: Final = ("rejected", "gave up")


class Dissent(NamedTuple):
    """One that says something else than our codec does."""

    who: str
    verdict: Verdict
    ours: Verdict

    @property
    def what(self) -> str:
        """The difference in a few words."""
        if self.verdict.outcome == self.ours.outcome == "accepted":
            return "accepts another value"
        if self.verdict.outcome == self.ours.outcome:
            return "says it otherwise"
        return f"{self.verdict.outcome}, ours {self.ours.outcome}"


def dissents(verdicts: Mapping[str, Verdict], *, foreign: bool = False) -> list[Dissent]:
    """Everybody who does not say what is to be said; empty where all agree. Who was not asked is
    left out.

    Codecs are held against ours (the first of the others, where ours was not asked). A client may
    take a frame, or refuse it, as our codec or any of Kafka's does: what Kafka's own clients take,
    others may take too. With ``foreign`` the answer is to another request: codecs do not know what
    was asked, and every client has to refuse it. What a caller is given is held against what most
    clients give, of frames that our codec takes.
    """
    asked = {name: verdict for name, verdict in verdicts.items() if verdict.asked}
    theirs = {name: verdict for name, verdict in asked.items() if _is_client(name)}
    coders = {name: verdict for name, verdict in asked.items() if name not in theirs}
    measure = next(iter(coders.values()), None)
    found = []
    for name, verdict in coders.items():
        assert measure is not None
        # Ours agree to the letter, texts too.
        if verdict != measure if name in OURS else not verdict.agrees_with(measure):
            found.append(Dissent(name, verdict, measure))
    allowed = {"refused"} if foreign else {_coarse(verdict) for verdict in coders.values()}
    given = Counter(each.value for each in theirs.values() if each.outcome == "accepted")
    usual = given.most_common(1)[0][0] if given else ""
    for name, verdict in theirs.items():
        if (measure is not None or foreign) and _coarse(verdict) not in allowed:
            found.append(Dissent(name, verdict, measure or Verdict("rejected")))
        elif verdict.outcome == "accepted" and verdict.value != usual and _takes(measure):
            found.append(Dissent(name, verdict, Verdict("accepted", usual)))
    return found


def cause_of(found: list[Dissent], kind: str, path: str) -> Cause:
    by_what: dict[str, list[str]] = {}
    for each in found:
        by_what.setdefault(each.what, []).append(each.who)
    who = "; ".join(
        f"{', '.join(sorted(names))}: {what}" for what, names in sorted(by_what.items())
    )
    return Cause(who, kind, shape(path))


def _is_client(name: str) -> bool:
    return name.startswith("client:")


def _takes(verdict: Verdict | None) -> bool:
    return verdict is None or verdict.outcome == "accepted"


def _coarse(verdict: Verdict) -> str:
    """A client that gives up by its own time-out has not taken the frame either."""
    return "refused" if verdict.outcome in _GIVEN_UP else verdict.outcome
