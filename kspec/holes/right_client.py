"""What the right client does in each case: the lines that it runs, and what its plays share.

It plays every case twice, but for those that an earlier search has stored.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from kspec.errors import KspecError
from kspec.holes.coverage import Lines, comparing_client, current_case, recording_client
from kspec.holes.fingerprint import Fingerprint, Seen, fingerprint, seen
from kspec.holes.mutant_client import source_of
from kspec.holes.mutations import Mutation, compared_places
from kspec.holes.workers import Workers
from kspec.model import CaseFile
from kspec.reference_client.client import Client
from kspec.results import Result
from kspec.runner.adapters import Adapter, LocalAdapter
from kspec.runner.schedule import run_pairs

__all__ = [
    "CAUGHT", "COMMON", "Baseline", "Places", "Playing", "RightPlays", "StoredPlays", "baseline",
    "differing", "play_all",
]  # fmt: skip

Places: TypeAlias = Mapping[str, frozenset[tuple[str, int]]]
"""The modules and lines that use each name."""

CAUGHT: Final = ("fail", "non-strict")
"""The verdicts by which a case catches a defect."""
COMMON: Final = "common"
"""The subject of lines that most subjects run alike."""

_PLAYS: Final = 48
"""Plays at a time in each process: they compute for 15 ms and wait for seconds. What the load may
have changed is played again by itself."""
_TIMES: Final = 2
_AGAIN: Final = 3
_MOST_SUBJECTS: Final = 6
_ENOUGH: Final = 0.9


@dataclass(frozen=True, slots=True)
class Playing:
    """A client of one class, on the event loop of this process."""

    client: type[Client]
    name: str = "defect"

    async def start(self) -> Adapter:
        return LocalAdapter(self.client())


@dataclass(frozen=True, slots=True)
class RightPlays:
    """What the right client did in a case, and how long the play took."""

    lines: frozenset[tuple[str, int]]
    fingerprint: Fingerprint
    seconds: float


class StoredPlays(Protocol):
    """Plays of earlier searches."""

    def find(self, case: CaseFile) -> RightPlays | None: ...

    def store(self, case: CaseFile, plays: RightPlays) -> None: ...


@dataclass(slots=True)
class Baseline:
    """What the right client does, by case."""

    cases: Mapping[str, CaseFile]
    plays: dict[str, RightPlays] = field(default_factory=dict)

    def running(self, mutation: Mutation, places: Places) -> list[str]:
        """Return the cases that run a line of the defect."""
        wanted = {(mutation.module, line) for line in mutation.lines}
        wanted.update(place for name in mutation.names for place in places.get(name, ()))
        return [case for case, each in self.plays.items() if not wanted.isdisjoint(each.lines)]

    def subject(self, running: Iterable[str]) -> str:
        """Return the group of cases of which the largest share runs a line."""
        sizes = Counter(each.group for each in self.cases.values())
        found = Counter(self.cases[each].group for each in running)
        shares = {group: count / sizes[group] for group, count in found.items()}
        most = max(shares.values())
        best = [group for group, share in shares.items() if share >= _ENOUGH * most]
        if len(best) > _MOST_SUBJECTS:
            return COMMON
        return min(best, key=lambda each: (-shares[each], each))


def baseline(
    cases: Sequence[CaseFile],
    *,
    jobs: int,
    on_progress: Callable[[int, int], None],
    stored: StoredPlays | None = None,
) -> Baseline:
    """Play every case twice with the right client, but for those whose plays are stored. Raises
    KspecError if it fails one."""
    found = Baseline({each.id: each for each in cases})
    new: list[CaseFile] = []
    for case in cases:
        plays = None if stored is None else stored.find(case)
        if plays is None:
            new.append(case)
        else:
            found.plays[case.id] = plays
    done = 0
    workers = Workers(jobs)
    try:
        for share in (new[at::jobs] for at in range(jobs)):
            if share:
                workers.start(_play_right, share, key=None)
        for _, (kind, *content) in workers.messages():
            if kind == "played":
                done += 1
                on_progress(done, _TIMES * len(new))
            elif kind == "right":
                name, plays = content
                found.plays[name] = plays
                if stored is not None:
                    stored.store(found.cases[name], plays)
            elif kind != "done":
                raise KspecError(f"the reference client: {next(iter(content), 'no play ends')}")
    finally:
        workers.kill()
    return found


def _play_right(cases: Sequence[CaseFile], tell: Callable[..., None]) -> None:
    lines: Lines = {}
    plays: dict[str, list[tuple[Seen, Mapping[str, int]]]] = {}
    seconds: dict[str, float] = {}

    def take(result: Result) -> None:
        if result.judgement.verdict in (*CAUGHT, "error"):
            raise KspecError(
                f"{result.case.id}: {result.judgement.verdict}: {result.judgement.why}"
            )
        plays.setdefault(result.case.id, []).append(seen(result))
        seconds[result.case.id] = result.seconds
        tell("played")

    asyncio.run(play_all(recording_client(lines), cases, take, is_right=True))
    asyncio.run(play_all(Client, list(reversed(cases)), take, is_right=True))
    for each in cases:
        ran, common = frozenset(lines.get(each.id, ())), fingerprint(plays[each.id])
        tell("right", each.id, RightPlays(ran, common, seconds[each.id]))


def differing(
    wanted: Sequence[Mutation], right: Baseline, places: Places, *, jobs: int
) -> dict[str, frozenset[str]]:
    """Return, by id, the cases in which an expression has another value with a defect than without
    it, in one more play of the right client. Defects that cannot be compared so are left out."""
    compared = [
        each
        for each in wanted
        if (each.line, each.number) in compared_places(source_of(each.module))
        and right.running(each, places)
    ]
    running = {case for each in compared for case in right.running(each, places)}
    cases = [right.cases[each] for each in sorted(running)]
    found: dict[str, set[str]] = {each.id: set() for each in compared}
    workers = Workers(jobs)
    try:
        for share in (cases[at::jobs] for at in range(jobs)):
            if share:
                workers.start(_play_compared, (share, compared), key=None)
        for _, (kind, *content) in workers.messages():
            if kind == "differs":
                for name, ids in content[0].items():
                    found[name] |= ids
            elif kind not in ("played", "done"):
                raise KspecError(f"the reference client: {next(iter(content), 'no play ends')}")
    finally:
        workers.kill()
    return {name: frozenset(each) for name, each in found.items()}


def _play_compared(
    work: tuple[Sequence[CaseFile], Sequence[Mutation]], tell: Callable[..., None]
) -> None:
    cases, compared = work
    found: dict[str, set[str]] = {}
    client = comparing_client(compared, found)
    asyncio.run(play_all(client, cases, lambda _result: tell("played"), is_right=True))
    tell("differs", found)
    tell("done")


async def play_all(
    client: type[Client],
    cases: Sequence[CaseFile],
    take: Callable[[Result], None],
    *,
    is_right: bool = False,
) -> None:
    """Play cases, several at a time, each in a context that names it. ``take`` gets the results; a
    case that the right client seems to fail is played again at the end, up to ``_AGAIN`` times."""
    waiting = list(reversed(cases))
    doubted: list[CaseFile] = []

    async def work() -> None:
        while waiting:
            case = waiting.pop()
            current_case.set(case.id)
            (result,) = await run_pairs([(Playing(client), case)])
            if is_right and result.judgement.verdict in (*CAUGHT, "error"):
                doubted.append(case)
            else:
                take(result)

    async with asyncio.TaskGroup() as group:
        for _ in range(_PLAYS):
            group.create_task(work())
    for case in doubted:
        current_case.set(case.id)
        for _ in range(_AGAIN):
            (result,) = await run_pairs([(Playing(client), case)])
            if result.judgement.verdict not in (*CAUGHT, "error"):
                break
        take(result)
