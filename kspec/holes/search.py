"""Play defects of the reference client, and report those that no case catches.

The right client plays every case twice, for the lines that each case runs and for what two plays
have in common. A defect then plays the cases that run its line, those of its subject first, until
one fails it in two plays. It is *caught* by that case, a *hole* if requests or answers differ from
those of the right client in two plays of a case, and otherwise *the same*. Each defect has a
process of its own. ``reasons`` has the holes that no user could notice.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from kspec.errors import KspecError
from kspec.holes.coverage import Lines, current_case, recording_client
from kspec.holes.fingerprint import Fingerprint, Seen, fingerprint, seen
from kspec.holes.mutant_client import mutant_client
from kspec.holes.mutations import Mutation
from kspec.holes.reasons import reason_for
from kspec.holes.workers import SILENT_SECONDS, Workers
from kspec.model import CaseFile
from kspec.reference_client.client import Client
from kspec.results import Result
from kspec.runner.adapters import Adapter, LocalAdapter
from kspec.runner.schedule import run_pairs

__all__ = ["CAUGHT", "COMMON", "Baseline", "Outcome", "Status", "baseline", "sample", "search"]

Status: TypeAlias = Literal["caught", "hole", "harmless", "same", "not reached", "does not start"]

Places: TypeAlias = Mapping[str, frozenset[tuple[str, int]]]
"""The modules and lines that use each name."""

CAUGHT: Final = ("fail", "non-strict")
"""The verdicts by which a case catches a defect."""
COMMON: Final = "common"
"""The subject of lines that most subjects run alike."""

PLAYS: Final = 6
"""Plays at a time in each process: they mostly wait."""
_MOST_SUBJECTS: Final = 6
_MOST_CONFIRMED: Final = 12
"""So many cases are played again to see whether what differs in them differs again."""
_PLAYS_OF_THE_RIGHT: Final = 2
"""What differs in one of so many more plays of the right client is chance."""
_ENOUGH: Final = 0.9
_MALFORMED: Final = "not a line of the protocol"


@dataclass(frozen=True, slots=True)
class _Playing:
    """A client of one class, on the event loop of this process."""

    client: type[Client]
    name: str = "defect"

    async def start(self) -> Adapter:
        return LocalAdapter(self.client())


@dataclass(slots=True)
class Baseline:
    """What the right client does. ``lines`` and ``fingerprints`` are by case."""

    cases: Mapping[str, CaseFile]
    lines: Lines = field(default_factory=dict)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def running(self, mutation: Mutation, places: Places) -> list[str]:
        """Return the cases that run a line of the defect."""
        wanted = {(mutation.module, line) for line in mutation.lines}
        wanted.update(place for name in mutation.names for place in places.get(name, ()))
        return [case for case, lines in self.lines.items() if not wanted.isdisjoint(lines)]

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a defect. ``by`` is the case that catches it, ``why`` its reason, or where the
    plays of a hole differ from those of the right client."""

    mutation: Mutation
    status: Status
    subject: str = ""
    by: str = ""
    why: str = ""
    played: int = 0


def sample(every: Sequence[Mutation], seed: int, number: int | None) -> list[Mutation]:
    """Draw so many defects by the seed, all of them by default. Those of a larger sample include
    those of a smaller one."""
    drawn = list(every)
    random.Random(f"holes {seed}").shuffle(drawn)
    return drawn[:number]


# ---- the right client ----------------------------------------------------------------------------


def baseline(
    cases: Sequence[CaseFile], *, jobs: int, on_progress: Callable[[int], None]
) -> Baseline:
    """Play every case twice with the right client. Raises KspecError if it fails one."""
    found = Baseline({each.id: each for each in cases})
    done = 0
    workers = Workers(jobs)
    try:
        for share in (list(cases[at::jobs]) for at in range(jobs)):
            if share:
                workers.start(_play_right, share, key=None)
        for _, (kind, *content) in workers.messages():
            if kind == "played":
                done += 1
                on_progress(done)
            elif kind == "right":
                case, lines, prints, seconds = content
                found.lines[case] = lines
                found.fingerprints[case] = prints
                found.seconds[case] = seconds
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

    asyncio.run(_play(recording_client(lines), cases, take, is_right=True))
    asyncio.run(_play(Client, list(reversed(cases)), take, is_right=True))
    for each in cases:
        tell(
            "right", each.id, lines.get(each.id, set()), fingerprint(plays[each.id]),
            seconds[each.id],
        )  # fmt: skip


async def _play(
    client: type[Client],
    cases: Sequence[CaseFile],
    take: Callable[[Result], None],
    *,
    is_right: bool = False,
) -> None:
    """Play cases, several at a time, each in a context that names it. ``take`` gets the results; a
    case that the right client seems to fail is played again at the end, and that counts."""
    waiting = list(reversed(cases))
    doubted: list[CaseFile] = []

    async def work() -> None:
        while waiting:
            case = waiting.pop()
            current_case.set(case.id)
            (result,) = await run_pairs([(_Playing(client), case)])
            if is_right and result.judgement.verdict in (*CAUGHT, "error"):
                doubted.append(case)
            else:
                take(result)

    async with asyncio.TaskGroup() as group:
        for _ in range(PLAYS):
            group.create_task(work())
    for case in doubted:
        current_case.set(case.id)
        (result,) = await run_pairs([(_Playing(client), case)])
        take(result)


# ---- defects -------------------------------------------------------------------------------------


def search(
    wanted: Sequence[Mutation],
    right: Baseline,
    places: Places,
    *,
    subjects: Sequence[str] = (),
    jobs: int,
) -> Generator[Outcome, None, None]:
    """Play the defects and yield what became of each, in the order in which they end.

    ``subjects`` leaves out the defects of others.
    """  # fmt: skip
    workers = Workers(jobs)
    waiting: list[tuple[Mutation, str, list[str]]] = []
    for mutation in wanted:
        running = right.running(mutation, places)
        subject = right.subject(running) if running else mutation.module
        if subjects and subject not in subjects:
            continue
        if not running:
            yield Outcome(mutation, "not reached", subject)
            continue
        groups = {each: right.cases[each].group for each in running}
        running.sort(key=lambda each: (groups[each] != subject, right.seconds[each], each))
        waiting.append((mutation, subject, running))
    waiting.reverse()
    begun: dict[str, tuple[Mutation, str, list[str]]] = {}

    def begin() -> None:
        while waiting and workers.has_room:
            mutation, subject, running = waiting.pop()
            begun[mutation.id] = mutation, subject, running
            cases = [right.cases[each] for each in running]
            workers.start(_play_defect, (mutation, cases, right.fingerprints), key=mutation.id)

    try:
        begin()
        for key, message in workers.messages():
            kind, *content = message
            if kind == "played":
                continue
            mutation, subject, running = begun.pop(key)
            if kind == "hung":
                why = f"no play ends within {SILENT_SECONDS:.0f} s"
                yield Outcome(mutation, "caught", subject, running[0], why)
            elif kind == "failed":
                yield Outcome(mutation, "does not start", subject, why=content[0])
            else:
                status, by, why, played = content
                reason = reason_for(mutation) if status == "hole" else None
                if reason is not None:
                    status, why = "harmless", reason
                yield Outcome(mutation, status, subject, by, why, played)
            begin()
    finally:
        workers.kill()


def _play_defect(
    work: tuple[Mutation, Sequence[CaseFile], Mapping[str, Fingerprint]], tell: Callable[..., None]
) -> None:
    mutation, cases, prints = work
    client = mutant_client(mutation)
    tell("done", *asyncio.run(_caught(client, cases, prints, tell)))


def _is_caught(result: Result) -> bool:
    """Whether the case fails the client, or the client answers in another shape than its call."""
    judgement = result.judgement
    return judgement.verdict in CAUGHT or (
        judgement.verdict == "error" and judgement.why.startswith(_MALFORMED)
    )


class _Caught(Exception):
    """A case seems to catch the defect."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.case.id)
        self.result = result


async def _caught(
    client: type[Client], cases: Sequence[CaseFile], prints: Mapping[str, Fingerprint],
    tell: Callable[..., None],
) -> tuple[Status, str, str, int]:  # fmt: skip
    left = {each.id: each for each in cases}
    differing: dict[str, str] = {}
    played = 0

    def take(result: Result) -> None:
        nonlocal played
        left.pop(result.case.id, None)
        played += 1
        tell("played")
        if _is_caught(result):
            raise _Caught(result)
        found = prints[result.case.id].difference(*seen(result))
        if found is not None:
            differing[result.case.id] = found

    while left:
        seemed: list[Result] = []
        try:
            await _play(client, list(left.values()), take)
        except ExceptionGroup as group:  # of plays that were cancelled, beside the one that counts
            caught, _ = group.split(_Caught)
            if caught is None:
                raise
            seemed = [each.result for each in caught.exceptions if isinstance(each, _Caught)]
        for each in seemed:
            (result,) = await run_pairs([(_Playing(client), each.case)])
            tell("played")
            if _is_caught(result):
                return "caught", each.case.id, result.judgement.why, played
    by_id = {each.id: each for each in cases}
    for case, path in list(differing.items())[:_MOST_CONFIRMED]:
        (result,) = await run_pairs([(_Playing(client), by_id[case])])
        tell("played")
        if prints[case].difference(*seen(result)) != path:
            continue
        right = [(_Playing(Client), by_id[case])] * _PLAYS_OF_THE_RIGHT
        differences = [
            prints[case].difference(*seen(result))
            for pair in right
            for result in await run_pairs([pair])
        ]
        tell("played")
        if path not in differences:
            return "hole", "", f"{case}: {path}", played
    return "same", "", "", played
