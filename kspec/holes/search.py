"""Play defects of the reference client, and report those that no case catches.

``right_client`` has the lines that each case runs, and what the plays of the right client have in
common. A defect plays the cases that run its line, those of its subject first, until one fails it
in two plays and passes the right client after them. It is *caught* by that case, a *hole* if
requests or answers differ from those of the right client in two plays of a case, and otherwise
*the same*. Each defect has a process of its own. ``reasons`` has the holes that no user could
notice.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from kspec.holes.fingerprint import seen
from kspec.holes.mutant_client import mutant_client
from kspec.holes.mutations import Mutation
from kspec.holes.reasons import reason_for
from kspec.holes.right_client import CAUGHT, Baseline, Places, Playing, RightPlays, play_all
from kspec.holes.workers import SILENT_SECONDS, Workers
from kspec.model import CaseFile
from kspec.reference_client.client import Client
from kspec.results import Result
from kspec.runner.schedule import run_pairs

__all__ = ["Outcome", "Status", "of_subjects", "sample", "search"]

Status: TypeAlias = Literal["caught", "hole", "harmless", "same", "not reached", "does not start"]

_MOST_CONFIRMED: Final = 12
"""So many cases are played again to see whether what differs in them differs again."""
_Differences: TypeAlias = dict[str, list[set[str]]]

_MORE_PLAYS: Final = 3
"""What differs in so many more plays of a defect is not chance."""
_PLAYS_OF_THE_RIGHT: Final = 4
"""What differs in one of so many more plays of the right client is chance."""
_FIRST: Final = 12
"""So many cases are played before the others: most defects are caught by one of them."""
_MOST_DOUBTS: Final = 3
"""So often a case is played in which the right client fails, too."""
_BUSY_SECONDS: Final = 20
"""A defect that computes for so long without the end of a play is in a loop: 48 plays at a time
compute for a second."""
_MALFORMED: Final = "not a line of the protocol"


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


def of_subjects(
    wanted: Sequence[Mutation], right: Baseline, places: Places, subjects: Sequence[str]
) -> list[Mutation]:
    """Return the defects of these subjects, or all if none is given."""
    return [
        each
        for each in wanted
        if not subjects or _subject(each, right.running(each, places), right) in subjects
    ]


def _subject(mutation: Mutation, running: Sequence[str], right: Baseline) -> str:
    return right.subject(running) if running else mutation.module


def search(
    wanted: Sequence[Mutation],
    right: Baseline,
    places: Places,
    *,
    differing: Mapping[str, frozenset[str]] = MappingProxyType({}),
    jobs: int,
) -> Generator[Outcome, None, None]:
    """Play the defects and yield what became of each, in the order in which they end.

    Those in ``differing`` play only these cases, and those with a reason none.
    """  # fmt: skip
    workers = Workers(jobs, busy_seconds=_BUSY_SECONDS)
    waiting: list[tuple[Mutation, str, list[str]]] = []
    for mutation in wanted:
        running = right.running(mutation, places)
        subject = _subject(mutation, running, right)
        if not running:
            yield Outcome(mutation, "not reached", subject)
            continue
        reason = reason_for(mutation)
        if reason is not None:
            yield Outcome(mutation, "harmless", subject, why=reason)
            continue
        running = [each for each in running if each in differing.get(mutation.id, (each,))]
        if not running:
            yield Outcome(mutation, "same", subject)
            continue
        groups = {each: right.cases[each].group for each in running}
        running.sort(key=lambda each: (groups[each] != subject, right.plays[each].seconds, each))
        waiting.append((mutation, subject, running))
    waiting.reverse()
    begun: dict[str, tuple[Mutation, str, list[str]]] = {}

    def begin() -> None:
        while waiting and workers.has_room:
            mutation, subject, running = waiting.pop()
            begun[mutation.id] = mutation, subject, running
            cases = [right.cases[each] for each in running]
            workers.start(_play_defect, (mutation, cases, right.plays), key=mutation.id)

    try:
        begin()
        for key, message in workers.messages():
            kind, *content = message
            if kind == "played":
                continue
            mutation, subject, running = begun.pop(key)
            if kind == "hung":
                why = (
                    f"no play ends within {SILENT_SECONDS:.0f} s, or {_BUSY_SECONDS} s of computing"
                )
                yield Outcome(mutation, "caught", subject, running[0], why)
            elif kind == "failed":
                yield Outcome(mutation, "does not start", subject, why=content[0])
            else:
                status, by, why, played = content
                yield Outcome(mutation, status, subject, by, why, played)
            begin()
    finally:
        workers.kill()


def _play_defect(
    work: tuple[Mutation, Sequence[CaseFile], Mapping[str, RightPlays]], tell: Callable[..., None]
) -> None:
    mutation, cases, right = work
    client = mutant_client(mutation)
    tell("done", *asyncio.run(_caught(client, cases, right, tell)))


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
    client: type[Client], cases: Sequence[CaseFile], plays: Mapping[str, RightPlays],
    tell: Callable[..., None],
) -> tuple[Status, str, str, int]:  # fmt: skip
    left = {each.id: each for each in cases}
    differing: dict[str, list[str]] = {}
    played = 0

    def take(result: Result) -> None:
        nonlocal played
        left.pop(result.case.id, None)
        played += 1
        tell("played")
        if _is_caught(result):
            raise _Caught(result)
        found = plays[result.case.id].fingerprint.differences(*seen(result))
        if found:
            differing[result.case.id] = found

    while left:
        seemed: list[Result] = []
        number = len(left) if played >= _FIRST else _FIRST
        try:
            await play_all(client, list(left.values())[:number], take)
        except ExceptionGroup as group:  # of plays that were cancelled, beside the one that counts
            caught, _ = group.split(_Caught)
            if caught is None:
                raise
            seemed = [each.result for each in caught.exceptions if isinstance(each, _Caught)]
        for each in seemed:
            why = await _why_caught(client, each.case, tell)
            if why is not None:
                return "caught", each.case.id, why, played
    found = await _confirmed(client, cases, plays, differing, tell)
    return ("same" if found is None else "hole"), "", found or "", played


async def _why_caught(
    client: type[Client], case: CaseFile, tell: Callable[..., None]
) -> str | None:
    """Play a case that seems to catch the defect once more, and the right client after it: a case
    that the right client fails as well, on a machine that is busy, catches nothing."""
    for _ in range(_MOST_DOUBTS):
        (result,) = await run_pairs([(Playing(client), case)])
        tell("played")
        if not _is_caught(result):
            return None
        (right,) = await run_pairs([(Playing(Client), case)])
        tell("played")
        if not _is_caught(right):
            return result.judgement.why
    return None


async def _confirmed(
    client: type[Client], cases: Sequence[CaseFile], plays: Mapping[str, RightPlays],
    differing: Mapping[str, list[str]], tell: Callable[..., None],
) -> str | None:  # fmt: skip
    """Return the first case and path in which more plays differ as the first one did, and no more
    plays of the right client do."""

    async def more_plays(of: type[Client], chosen: Iterable[str], times: int) -> _Differences:
        """Return the paths that differ in each play, by case."""
        wanted = set(chosen)
        found: _Differences = {}

        def take(result: Result) -> None:
            tell("played")
            paths = plays[result.case.id].fingerprint.differences(*seen(result))
            found.setdefault(result.case.id, []).append(set(paths))

        await play_all(of, [each for each in cases if each.id in wanted] * times, take)
        return found

    chosen = list(differing)[:_MOST_CONFIRMED]
    # At the same time: what the load of the machine does, it does to both.
    again, right = await asyncio.gather(
        more_plays(client, chosen, _MORE_PLAYS), more_plays(Client, chosen, _PLAYS_OF_THE_RIGHT)
    )
    always = {
        case: [path for path in differing[case] if all(path in each for each in more)]
        for case, more in again.items()
    }
    for case, paths in always.items():
        for path in paths:
            if not any(path in each for each in right[case]):
                return f"{case}: {path}"
    return None
