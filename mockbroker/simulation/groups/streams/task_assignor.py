"""The assignor of the broker, as a pure function: which member runs which tasks.

``sticky`` balances tasks over members, leaves with a member what it has, prefers members with a
standby of a task, and never puts two copies of a task into one process. As in Kafka, members and
processes come in the order of Java's hash tables, which decides between equal ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Final

import msgspec

from mockbroker.simulation.groups.streams.streams_group import NO_TASKS, Task, TaskOffsets, Tasks
from mockbroker.simulation.state.java_maps import hash_order

__all__ = ["ASSIGNOR", "Worker", "sticky"]

ASSIGNOR: Final = "sticky"
"""Its name, the only one that Kafka ships."""


class Worker(msgspec.Struct, frozen=True):
    """A member as the assignor sees it: its process, the tasks that it had, and the offsets that it
    sent of tasks."""

    process_id: str
    former: Tasks = NO_TASKS
    offsets: TaskOffsets = ()


class _Quota:
    """How many tasks a member may have while others have fewer: members that reach it no longer
    count, and the rest share what is left."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = _share(tasks, members)

    def given(self, held: int) -> None:
        """A member holds this many tasks now."""
        if held == self.each:
            self._members -= 1
            self._tasks -= held
            self.each = _share(self._tasks, self._members)


def _share(tasks: int, members: int) -> int:
    return -(-tasks // members) if members else 0


class _Process:
    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        """Number of tasks by member."""
        self.tasks: set[Task] = set()

    @property
    def load(self) -> float:
        return sum(self.held.values()) / len(self.held)

    def least_loaded(self) -> str:
        return min(self.held, key=self.held.__getitem__)


def _ranked(workers: Mapping[str, Worker]) -> dict[Task, list[str]]:
    """Members that had a standby of a task, then those that sent its offset; among either the
    furthest offset first."""
    found: dict[Task, list[tuple[bool, int, str]]] = {}
    for member, worker in workers.items():
        offsets = {(name, index): offset for name, index, offset in worker.offsets}
        standby = worker.former.standby
        for task in (*standby, *(task for task in offsets if task not in standby)):
            found.setdefault(task, []).append((task not in standby, -offsets.get(task, 0), member))
    return {
        task: [member for *_, member in sorted(rows, key=lambda row: row[:2])]
        for task, rows in found.items()
    }


class _Assignment:
    def __init__(
        self,
        workers: Mapping[str, Worker],
        active: int,
        standby: int,
        order: list[str],
        *,
        tries_all: bool,
    ) -> None:
        self.tries_all = tries_all
        self.processes: dict[str, _Process] = {}
        self.process_of: dict[str, _Process] = {}
        self.active: dict[str, set[Task]] = {member: set() for member in order}
        self.standby: dict[str, set[Task]] = {member: set() for member in order}
        self.active_quota = _Quota(active, len(order))
        self.quota = _Quota(active + standby, len(order))
        self.formerly_active: dict[Task, str] = {}
        self.formerly_standby = _ranked({name: workers[name] for name in order})
        processes = (workers[member].process_id for member in order)
        for process_id in hash_order(processes, len(order)):
            self.processes[process_id] = _Process()
        for member in order:
            worker = workers[member]
            process = self.processes[worker.process_id]
            process.held[member] = 0
            self.process_of[member] = process
            for task in worker.former.active:
                self.formerly_active[task] = member

    def give(self, member: str, task: Task, *, active: bool) -> None:
        process = self.process_of[member]
        process.held[member] += 1
        process.tasks.add(task)
        (self.active if active else self.standby)[member].add(task)
        if active:
            self.active_quota.given(process.held[member])
        self.quota.given(process.held[member])

    def held(self, member: str) -> int:
        return self.process_of[member].held[member]

    def former_standby(self, task: Task, *, copies: bool) -> str | None:
        """The least loaded member that had a standby of the task; with ``copies``, only one whose
        process has none of it now."""
        best: str | None = None
        least = (float("inf"), float("inf"))
        for member in self.formerly_standby.get(task, ()):
            process = self.process_of[member]
            if copies and task in process.tasks:
                if best is None and not self.tries_all:
                    return None
                continue
            load = process.load, float(process.held[member])
            if best is None or (load[0] < least[0] and load[1] < least[1]):
                best, least = member, load
        return best


def sticky(
    workers: Mapping[str, Worker],
    counts: Mapping[str, int],
    stateful: Iterable[str],
    standbys: int,
    *,
    tries_all: bool = True,
) -> dict[str, Tasks]:
    """Assign the tasks. ``counts`` are the numbers of tasks by subtopology; those of ``stateful``
    subtopologies get this many standbys, as far as there are processes for them. Without
    ``tries_all`` a standby stays with none of its members if the first one's process runs it."""
    order = hash_order(workers)
    if not order:
        return {}
    tasks = [(name, index) for name in sorted(counts) for index in range(counts[name])]
    kept = frozenset(stateful)
    copied = [task for task in tasks if task[0] in kept]
    assignment = _Assignment(
        workers, len(tasks), len(copied) * standbys, order, tries_all=tries_all
    )
    _assign_active(assignment, tasks)
    if standbys:
        _assign_standby(assignment, copied, standbys)
    return {
        member: Tasks(frozenset(assignment.active[member]), frozenset(assignment.standby[member]))
        for member in order
    }


def _assign_active(assignment: _Assignment, tasks: list[Task]) -> None:
    by_partition = sorted(tasks, key=lambda task: (task[1], task[0]))
    rest = []
    for task in by_partition:
        member = assignment.formerly_active.get(task)
        if member is not None and assignment.held(member) < assignment.active_quota.each:
            assignment.give(member, task, active=True)
        else:
            rest.append(task)
    free = []
    for task in rest:
        member = assignment.former_standby(task, copies=False)
        if member is not None and assignment.held(member) < assignment.active_quota.each:
            assignment.give(member, task, active=True)
        else:
            free.append(task)
    numbers = count()
    queue = [(each.load, next(numbers), each) for each in assignment.processes.values()]
    heapq.heapify(queue)
    for task in sorted(free):
        _, _, process = heapq.heappop(queue)
        assignment.give(process.least_loaded(), task, active=True)
        heapq.heappush(queue, (process.load, next(numbers), process))


def _assign_standby(assignment: _Assignment, tasks: list[Task], standbys: int) -> None:
    rest: list[tuple[Task, int]] = []
    for task in sorted(tasks, key=lambda task: (task[1], task[0]), reverse=True):
        for number in range(standbys):
            member = assignment.formerly_active.get(task)
            if (
                member is None
                or task in assignment.process_of[member].tasks
                or assignment.held(member) >= assignment.quota.each
            ):
                member = assignment.former_standby(task, copies=True)
            if member is None or assignment.held(member) >= assignment.quota.each:
                rest.append((task, standbys - number))
                break
            assignment.give(member, task, active=False)
    for task, left in sorted(rest, key=lambda each: each[0], reverse=True):
        for _ in range(left):
            processes = sorted(assignment.processes.values(), key=lambda each: each.load)
            process = next((each for each in processes if task not in each.tasks), None)
            if process is None:
                break
            assignment.give(process.least_loaded(), task, active=False)
