"""``kspec prove``: show that a case can fail, and fails only for what it is about.

The reference client must pass, and everything that the case waits for must come. The defect
that the case names must fail, and of the defects that the cases of its group name, only those
it declares may fail. Those declared as lax must be non-strict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kspec.defects.catalog import DEFECTS
from kspec.judge import Judgement
from kspec.model import CaseFile
from kspec.results import Result
from kspec.runner.clients import Local
from kspec.runner.schedule import run_pairs

__all__ = ["PLAYS_ALONE", "Flaw", "Pair", "confirmed", "prove", "suspected"]

Pair: TypeAlias = tuple[Local, CaseFile]
"""A client and the case it plays."""

PLAYS_ALONE: Final = 2


@dataclass(frozen=True, slots=True)
class Flaw:
    """A problem with a case."""

    case: str
    problem: str

    def __str__(self) -> str:
        return f"{self.case}: {self.problem}"


async def prove(
    cases: Sequence[CaseFile], beside: Sequence[CaseFile], *, jobs: int = 16
) -> list[Flaw]:
    """Return the flaws of ``cases``. ``beside`` holds all cases, for their defects.

    With many plays on few cores, waits are late and
    timeouts depend on the machine. Each apparent flaw is therefore played by itself, up to
    ``PLAYS_ALONE`` times, and is none if it does not show again.
    """
    unknown = [
        Flaw(each.id, f"{name!r} is not a defect; `kspec misbehaviours` lists them")
        for each in cases
        for name in each.case.defects
        if name not in DEFECTS
    ]
    unproved = [
        Flaw(each.id, "no `wrong`: name the defect that proves that the case can fail")
        for each in cases
        if each.case.wrong is None and not each.case.informational
    ]
    return unknown or unproved + await confirmed(await suspected(cases, beside, jobs=jobs))


async def suspected(
    cases: Sequence[CaseFile], beside: Sequence[CaseFile], *, jobs: int = 16
) -> list[Pair]:
    """Play each pair once, several at a time, and return those that seem to have a flaw."""
    return await _flawed(_pairs(cases, beside), jobs)


async def confirmed(pairs: Sequence[Pair]) -> list[Flaw]:
    """The flaws that show in each of ``PLAYS_ALONE`` plays, one after the other. The caller plays
    nothing else meanwhile."""
    for _ in range(PLAYS_ALONE - 1):
        pairs = await _flawed(pairs, jobs=1)
    return [flaw for each in await run_pairs(pairs) if (flaw := _flaw(each)) is not None]


async def _flawed(pairs: Sequence[Pair], jobs: int) -> list[Pair]:
    results = await run_pairs(pairs, jobs=jobs)
    return [pair for pair, result in zip(pairs, results, strict=True) if _flaw(result) is not None]


def _pairs(cases: Sequence[CaseFile], beside: Sequence[CaseFile]) -> list[Pair]:
    """The reference client with each case, and each defect with those of its group."""
    reference = Local("reference")
    pairs: list[Pair] = [(reference, each) for each in cases]
    for group in dict.fromkeys(each.group for each in cases):
        members = [each for each in cases if each.group == group]
        names = {name for each in members for name in each.case.defects}
        names |= {
            each.case.defects[0] for each in beside if each.group == group and each.case.defects
        }
        clients = [Local(f"wrong:{name}", name) for name in sorted(names)]
        pairs += [(client, each) for client in clients for each in members]
    return pairs


def _flaw(result: Result) -> Flaw | None:
    if result.client != "reference":
        name = result.client.removeprefix("wrong:")
        return _flaw_of(name, result.case, result.judgement)
    if result.judgement.verdict in ("pass", "informational"):
        unmet = [text for variant in result.variants for text in variant.unmet]
        if unmet:
            return Flaw(result.case.id, f"the reference client: waited in vain for {unmet[0]}")
        return None
    return Flaw(result.case.id, f"the reference client: {_describe(result.judgement)}")


def _flaw_of(name: str, case: CaseFile, judgement: Judgement) -> Flaw | None:
    wrong = case.case.wrong
    failed = judgement.verdict == "fail"
    if wrong is None:
        return None  # it requires nothing, so no client can fail it
    if name == wrong.by and judgement.verdict != wrong.verdict:
        return Flaw(case.id, f"{name} does not fail it: {_describe(judgement)}")
    if name in wrong.also and not failed:
        return Flaw(case.id, f"{name} is declared to fail it too, but does not")
    if name in wrong.lax and judgement.verdict != "non-strict":
        return Flaw(case.id, f"{name} is declared to be non-strict in it: {_describe(judgement)}")
    if failed and name != wrong.by and name not in wrong.also:
        return Flaw(case.id, f"{name} also fails it, but is not declared: {_describe(judgement)}")
    return None


def _describe(judgement: Judgement) -> str:
    return f"{judgement.verdict}: {judgement.why}" if judgement.why else judgement.verdict
