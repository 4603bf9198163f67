"""Find who disagrees with whom, so that a thousand frames with one cause are one finding.

Decoders come in two families. A codec's value is the frame as it writes it back, a client's is the
result it gives its caller. Values are compared within a family, outcomes between families.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from kspec.clientfuzz.comparison import Cause, shape
from kspec.clientfuzz.decoders.verdicts import Verdict

__all__ = ["OURS", "Dissent", "cause_of", "dissents"]

OURS: Final = ("pure", "native", "reference")
"""kproto's codecs. All others are compared with the first."""

_GIVEN_UP: Final = ("rejected", "gave up")


class Dissent(NamedTuple):
    """A participant whose verdict differs from our codec's."""

    who: str
    verdict: Verdict
    ours: Verdict

    @property
    def what(self) -> str:
        """The difference in a few words."""
        if self.verdict.outcome == self.ours.outcome == "accepted":
            return "accepts another value"
        if self.verdict.outcome == self.ours.outcome:
            return "reports it differently"
        return f"{self.verdict.outcome}, ours {self.ours.outcome}"


def dissents(verdicts: Mapping[str, Verdict], *, foreign: bool = False) -> list[Dissent]:
    """Return everyone with an unexpected verdict; an empty list if all agree. Participants that
    were not asked are left out.

    Codecs are compared with ours, or with the first codec if ours was not asked. A client may
    accept or reject a frame if our codec or any of Kafka's does, since what Kafka's own clients
    accept, others may accept too. With ``foreign`` the answer belongs to another request; codecs
    cannot know that, but every client must reject it. A client's result is compared with that of
    most clients, for frames that our codec accepts.
    """
    applicable = {name: verdict for name, verdict in verdicts.items() if verdict.applicable}
    theirs = {name: verdict for name, verdict in applicable.items() if _is_client(name)}
    coders = {name: verdict for name, verdict in applicable.items() if name not in theirs}
    measure = next(iter(coders.values()), None)
    found = []
    for name, verdict in coders.items():
        assert measure is not None
        # Our codecs must agree exactly, including texts.
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
    """A client that times out has not accepted the frame either."""
    return "refused" if verdict.outcome in _GIVEN_UP else verdict.outcome
