"""A second, independent statement of the KRaft reassignment rules, in the algebra of sets.

It shares no code with ``mockbroker`` and keeps the in-sync replicas as a set: what it says about a
partition is R (ordered replicas), I (in sync), A (adding), D (removing), the leader and its epoch.
Errors are (code, text) pairs; None is success.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Outcome = tuple[int, str | None]
SUCCESS: Outcome = (0, None)

GENERIC = {
    80: "The preferred leader was not available.",
    83: "Eligible topic partition leaders are not available.",
    84: "Leader election not needed for topic partition.",
}


@dataclass
class ModelPartition:
    R: list[int]
    I: set[int]  # noqa: E741 - the letter the requirements use
    leader: int
    epoch: int = 0
    A: set[int] = field(default_factory=set)
    D: set[int] = field(default_factory=set)

    @property
    def busy(self) -> bool:
        return bool(self.A | self.D)

    @property
    def heading(self) -> set[int]:
        """Where it is going: (replicas with adding) without removing."""
        return (set(self.R) | self.A) - self.D

    @property
    def overdue(self) -> bool:
        """Complete, yet not completed: an unclean election comes after Kafka looked whether a
        reassignment is complete, so the next change of the partition, of whatever kind, does it."""
        return self.busy and self.heading <= self.I


class SetModel:
    """Brokers with a live set, and partitions by (topic, index)."""

    def __init__(self, brokers: Iterable[int], partitions: dict[tuple[str, int], list[int]]):
        self.known = set(brokers)
        self.live = set(brokers)
        self.unclean: set[str] = set()
        self.P = {tp: ModelPartition(list(r), set(r), r[0]) for tp, r in partitions.items()}

    # ---- the one transition ----------------------------------------------------------------------

    def _settle(
        self, topic: str, p: ModelPartition, before_r: set[int], before_leader: int, *,
        unclean: bool, first: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Finish the reassignment if it can be, then see who leads."""
        if p.busy and p.heading and p.heading <= p.I:
            p.R = [b for b in p.R if b not in p.D]
            p.I = p.I - p.D
            p.A, p.D = set(), set()
        eligible = p.I & self.live
        ranked = [*first, before_leader, *p.R]
        candidates = [b for b in ranked if b in eligible]
        if candidates:
            p.leader = candidates[0]
        elif unclean and self.live & set(p.R):
            p.leader = min(self.live & set(p.R), key=p.R.index)
            p.I = {p.leader}
        else:
            p.leader = -1
        p.epoch += p.leader != before_leader or bool(before_r - set(p.R))

    # ---- 45 --------------------------------------------------------------------------------------

    def alter(self, topic: str, index: int, target: Sequence[int] | None, guard: bool) -> Outcome:
        if topic not in {name for name, _ in self.P}:
            return 3, f"Unable to find a topic named {topic}."
        if (topic, index) not in self.P:
            return 3, f"Unable to find partition {topic}:{index}."
        p = self.P[topic, index]
        if target is None:
            return self._cancel(topic, index, p)
        problem = self._problem(target)
        if problem:
            return 39, f"The manual partition assignment includes {problem}"
        if guard and len(p.heading if p.busy else set(p.R)) != len(target):
            now = len(p.heading if p.busy else set(p.R))
            return 38, f"The replication factor is changed from {now} to {len(target)}"
        before_r, before_leader = set(p.R), p.leader
        wanted, present = set(target), set(p.R)
        p.R = [*target, *sorted(present - wanted)]
        # Kafka leaves either list alone when the new target gives it nothing to hold.
        p.A = (wanted - present) or p.A
        p.D = (present - wanted) or p.D
        self._settle(topic, p, before_r, before_leader, unclean=False)
        return SUCCESS

    def _problem(self, target: Sequence[int]) -> str | None:
        if not target:
            return "an empty replica list."
        unknown = {b for b in target if b not in self.known}
        repeated = {b for b in target if list(target).count(b) > 1}
        worst = min(unknown | repeated, default=None)
        if worst is None:
            return None
        if worst in unknown:
            return f"broker {worst}, but no such broker is registered."
        return f"the broker {worst} more than once."

    def _cancel(self, topic: str, index: int, p: ModelPartition) -> Outcome:
        if not p.busy:
            return 85, None
        back = [b for b in p.R if b not in p.A]
        in_sync = p.I - p.A
        if not in_sync:
            if topic not in self.unclean:
                return 39, (
                    f"Unable to revert partition assignment for {topic}:{index} because it would "
                    "require an unclean leader election."
                )
            in_sync = {back[0]}
        before_r, before_leader = set(p.R), p.leader
        p.R, p.I, p.A, p.D = back, in_sync, set(), set()
        self._settle(topic, p, before_r, before_leader, unclean=topic in self.unclean)
        return SUCCESS

    # ---- 43 --------------------------------------------------------------------------------------

    def elect(self, topic: str, index: int, unclean: bool) -> Outcome:
        if topic not in {name for name, _ in self.P}:
            return 3, f"No such topic as {topic}"
        if (topic, index) not in self.P:
            return 3, f"No such partition as {topic}-{index}"
        p = self.P[topic, index]
        if (p.leader in self.live) if unclean else (p.leader == p.R[0]):
            return 84, GENERIC[84]
        if not p.overdue:
            if unclean and not self.live & set(p.R):
                return 83, GENERIC[83]
            if not unclean and p.R[0] not in p.I & self.live:
                return 80, GENERIC[80]
        first = [] if unclean else [p.R[0]]
        self._settle(topic, p, set(p.R), p.leader, unclean=unclean, first=first)
        return SUCCESS

    # ---- 46 and Metadata -------------------------------------------------------------------------

    def ongoing(self) -> dict[tuple[str, int], tuple[list[int], set[int], set[int]]]:
        return {tp: (p.R, p.A, p.D) for tp, p in self.P.items() if p.busy}

    # ---- steps -----------------------------------------------------------------------------------

    def join(self, tp: tuple[str, int], broker: int) -> bool:
        p = self.P[tp]
        if broker in p.I:
            return True
        if broker not in set(p.R) & self.live or p.leader == -1:
            return False
        before_r, before_leader = set(p.R), p.leader
        p.I = p.I | {broker}
        self._settle(tp[0], p, before_r, before_leader, unclean=tp[0] in self.unclean)
        return True

    def leave(self, tp: tuple[str, int], broker: int) -> bool:
        p = self.P[tp]
        if broker not in p.I:
            return broker in p.R
        if broker == p.leader or not p.I - {broker}:
            return False
        p.I = p.I - {broker}
        return True

    def stop(self, broker: int) -> None:
        self.live = self.live - {broker}
        for (topic, _), p in self.P.items():
            if broker in p.I:
                rest = p.I - {broker}
                unclean = topic in self.unclean
                replacement = unclean and self.live & set(p.R)
                if not rest and not replacement:
                    # Nobody left to lead: the last in-sync replica stays on record.
                    p.epoch += p.leader != -1
                    p.leader = -1
                    continue
                before_leader = p.leader
                p.I = rest
                self._settle(topic, p, set(p.R), before_leader, unclean=unclean)

    def start(self, broker: int) -> None:
        self.live = self.live | {broker}
        for (topic, _), p in self.P.items():
            if p.leader == -1:
                self._settle(topic, p, set(p.R), -1, unclean=topic in self.unclean)
