"""Reports made by hand: what a page is asked to show, without playing anything."""

from __future__ import annotations

from kproto.journal import Entry
from kspec.client_catalog import CLIENTS
from kspec.judge import Finding, Judgement, Verdict
from kspec.model import CaseFile
from kspec.results import Call, Greeting, Report, Result, VariantResult
from kspec.runner.files import load_cases
from scripts.conformance_results import published

__all__ = ["every_client", "made"]


def made(
    client: str, case: CaseFile, verdict: Verdict, says: str = "rule", *, entries: int = 12
) -> Result:
    """A result of one variant whose last entry is the evidence."""
    finding = Finding("must", says, verdict != "fail", f"evidence: {says}", (entries,))
    judgement = Judgement(verdict, f"not met: {says}" * (verdict == "fail"), (finding,))
    journal = [
        Entry(number, number * 10**6, 1, 1, "event", says, event="connected", note=says)
        for number in range(1, entries + 1)
    ]
    call = Call("first", "{}", says, 1.0, says)
    return Result(client, case, judgement, [VariantResult(says, judgement, journal, [call])])


def every_client() -> Report:
    """Every client and every case: what fails is what failed in the published run."""
    known = published()
    names, cases = [each.name for each in CLIENTS], load_cases()
    return Report(
        clients=names,
        cases=cases,
        results=[
            made(name, case, "fail" if case.id in known.get(name, ()) else "pass", case.id)
            for name in names
            for case in cases
        ],
        greetings={
            each.name: Greeting(each.name, each.release, each.language, options={"retries": "1"})
            for each in CLIENTS
        },
        date="2026-01-31",
    )
