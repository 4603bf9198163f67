"""The steps of a member from its tasks to its target, as rows.

It first gives up what it should not have, then gets what is new as soon as no other member has it.
A process never has two copies of a task. From 4.4 on a member whose standby becomes active, or
whose active task becomes a standby, changes its role without giving it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.groups.modern.modern_group import MemberState
from mockbroker.simulation.groups.streams.streams_group import NO_TASKS, Member, Task, Tasks
from mockbroker.simulation.releases.rows import Row, always, apply_first

__all__ = ["ON_DIFFERENCE", "ON_RECONCILE", "Holders", "Reconciliation", "ReconciliationRow",
           "reconcile"]  # fmt: skip

_ROLES_CHANGE: Final = (4, 4)


class Holders(msgspec.Struct, frozen=True):
    """Which processes have which tasks, those that they still have to give up included."""

    active: Mapping[Task, str]
    standby: frozenset[tuple[Task, str]]


class Reconciliation(msgspec.Struct, eq=False):
    """A heartbeat of a member that may not be at its target. ``owned`` is None if it does not say
    what it has. ``holders`` is None while a tester keeps everything from becoming free."""

    member: Member
    target_epoch: int
    target: Tasks
    owned: Tasks | None
    holders: Holders | None
    kept: Tasks = NO_TASKS
    revoked: Tasks = NO_TASKS
    added: Tasks = NO_TASKS
    waits: bool = False
    after: Member | None = None

    @property
    def epoch(self) -> int:
        """The epoch of a member that has to give up more."""
        return self.member.epoch + (self.member.state is MemberState.UNREVOKED)

    def has_not_released(self, tasks: Tasks) -> bool:
        return bool(tasks) and (self.owned is None or self.owned.overlaps(tasks))

    def compare(self, busy_active: Callable[[Task], bool], busy: Callable[[Task], bool]) -> None:
        """Compute which tasks to keep, to give up and to add; tasks that are busy have to wait."""
        has, target = self.member.assigned, self.target
        self.kept = Tasks(has.active & target.active, has.standby & target.standby)
        self.revoked = Tasks(has.active - target.active, has.standby - target.standby)
        active, standby = target.active - has.active, target.standby - has.standby
        if self.holders is None:
            self.waits = bool(active or standby)
            return
        self.added = Tasks(
            frozenset(task for task in active if not busy_active(task)),
            frozenset(task for task in standby if not busy(task)),
        )
        self.waits = self.added.active != active or self.added.standby != standby

    def runs(self, task: Task) -> bool:
        """Whether a member of the process runs the task."""
        return self.holders is not None and (
            self.holders.active.get(task) == self.member.process_id
        )  # fmt: skip

    def copies(self, task: Task) -> bool:
        """Whether a member of the process has a standby of the task."""
        return self.holders is not None and (
            (task, self.member.process_id) in self.holders.standby
        )  # fmt: skip

    def is_run(self, task: Task) -> bool:
        return self.holders is not None and task in self.holders.active


ReconciliationRow: TypeAlias = Row[Reconciliation, Reconciliation]


def _compare(event: Reconciliation) -> None:
    event.compare(
        lambda task: event.is_run(task) or event.copies(task),
        lambda task: event.runs(task) or event.copies(task),
    )


def _compare_roles(event: Reconciliation) -> None:
    """As before, but the member's own copies of a task do not keep it from another role."""
    has = event.member.assigned
    event.compare(
        lambda task: event.is_run(task) or (event.copies(task) and task not in has.standby),
        lambda task: (event.runs(task) and task not in has.active) or event.copies(task),
    )
    demoted = event.added.standby & has.active
    event.kept |= Tasks(standby=demoted)
    event.added = replace(event.added, standby=event.added.standby - demoted)
    promoted = has.standby & event.target.active
    event.revoked = replace(event.revoked, standby=event.revoked.standby - promoted)
    granted = frozenset() if event.has_not_released(event.revoked) else event.added.active
    event.kept |= Tasks(standby=promoted - granted)


ON_DIFFERENCE: Final[tuple[ReconciliationRow, ...]] = (
    Row("DP-STREAMS-14", always, (_compare,), until=_ROLES_CHANGE),
    Row("DP-STREAMS-15", always, (_compare_roles,), since=_ROLES_CHANGE),
)
"""The tasks that the member has to give up, and those that it may get."""


def _still_owns(event: Reconciliation) -> bool:
    member = event.member
    return member.state is MemberState.UNREVOKED and (
        event.owned is None or event.owned.overlaps(member.revoking)
    )


def _stay(event: Reconciliation) -> None:
    event.after = event.member


def _revoke(event: Reconciliation) -> None:
    tasks = event.kept.active | event.revoked.active
    event.after = replace(
        event.member.at_epoch(event.epoch),
        state=MemberState.UNREVOKED,
        assigned=event.kept,
        revoking=event.revoked,
        epochs={task: epoch for task, epoch in event.member.epochs.items() if task in tasks},
    )


def _advance(event: Reconciliation, state: MemberState) -> None:
    epochs = {
        task: epoch for task, epoch in event.member.epochs.items() if task in event.kept.active
    }
    epochs.update(dict.fromkeys(event.added.active, event.target_epoch))
    event.after = replace(
        event.member.at_epoch(event.target_epoch),
        state=state,
        assigned=event.kept | event.added,
        revoking=NO_TASKS,
        epochs=epochs,
    )


ON_RECONCILE: Final[tuple[ReconciliationRow, ...]] = (
    Row("DP-STREAMS-13", lambda event: event.member.is_reconciled_to(event.target_epoch), (_stay,)),
    Row("DP-STREAMS-13", _still_owns, (_stay,)),
)
"""Cases in which the member stays as it is."""

ON_STEP: Final[tuple[ReconciliationRow, ...]] = (
    Row("DP-STREAMS-13", lambda event: event.has_not_released(event.revoked), (_revoke,)),
    Row(
        "DP-STREAMS-13",
        lambda event: event.waits,
        (lambda event: _advance(event, MemberState.UNRELEASED),),
    ),
    Row("DP-STREAMS-13", always, (lambda event: _advance(event, MemberState.STABLE),)),
)
"""The next step."""


def reconcile(
    gate: tuple[ReconciliationRow, ...],
    difference: tuple[ReconciliationRow, ...],
    event: Reconciliation,
) -> Member:
    """Return the member as it is after the heartbeat."""
    if not apply_first(gate, event, event):
        apply_first(difference, event, event)
        apply_first(ON_STEP, event, event)
    assert event.after is not None, "the last row always applies"
    return event.after
