"""The results of released clients: data in the repository, pages on the site.

``make conformance`` plays every case on every client and writes what the pages need into
``docs/reference/conformance/results``: ``run.json``, and a file for each client. Titles and texts
of cases come from the suite, explanations from ``kspec/findings.yaml``. Cases that the suite no
longer has are left out.

    .venv/bin/python -m scripts.conformance_results known               # failures, as a baseline
    .venv/bin/python -m scripts.conformance_results write RUN_FOLDER    # of `kspec run --out`
    .venv/bin/python -m scripts.conformance_results add RUN_FOLDER      # of some clients and cases
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kspec.cli.compare import read_run
from kspec.cli.publish import FINDINGS, read_sentences, report_sentences
from kspec.cli.report import excerpts_in
from kspec.client_catalog import CLIENTS
from kspec.errors import KspecError
from kspec.judge import Verdict
from kspec.model import CaseFile, Severity
from kspec.report import as_markdown, findings_of, resolved
from kspec.report.conformance_pages import (
    ClientFacts,
    Run,
    RunCase,
    RunFinding,
    RunResult,
    RunVariant,
    Sentences,
    as_pages,
    causes_of,
    in_one_line,
    page_name,
)
from kspec.report.data import FORMAT
from kspec.report.maintainers import Excerpts
from kspec.runner.files import load_cases

__all__ = ["MAINTAINERS", "RESULTS", "add", "main", "pages", "published", "read", "write"]

_T = TypeVar("_T")

RESULTS: Final = (
    Path(__file__).resolve().parents[1] / "docs" / "reference" / "conformance" / "results"
)
MAINTAINERS: Final = ("kafka-python", "confluent-kafka", "franz-go")
"""Clients with a page for their maintainers. Their data have excerpts of the traffic."""
_PLAIN: Final[Sequence[Verdict]] = ("pass", "informational", "unsupported")
"""Verdicts of which the pages show nothing more."""


class _Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``broken`` has the broken rules of all variants, each with its level: ``must: it ends``.

    ``variants`` are the names of those that failed, if others did not; ``why`` has the judge's
    words, if the failure has no explanation; ``traffic`` is an excerpt."""

    severity: Severity | None
    broken: list[str]
    variants: list[str] = []
    why: str = ""
    traffic: list[str] = []


class _Client(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``failures``, ``advice`` (broken rules of cases that are non-strict) and ``unsteady`` are by
    case; ``others`` has the cases of the other verdicts by group: ``{"admin": "001 004"}``."""

    client: str
    version: str
    language: str
    others: dict[Verdict, dict[str, str]]
    options: dict[str, str] = {}
    raw_calls: dict[str, str] = {}
    failures: dict[str, _Failure] = {}
    advice: dict[str, list[str]] = {}
    unsteady: dict[str, str] = {}


class _Played(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all clients share. ``clients`` are in the order of the pages."""

    date: str
    suite: int
    kspec: str
    clients: list[str]
    absent: dict[str, str]


# ---- from a run to data --------------------------------------------------------------------------


def write(run: Run, sentences: Sentences, excerpts: Excerpts, folder: Path = RESULTS) -> None:
    """Write the data of a run; files of an earlier one are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.json"):
        path.unlink()
    played = _Played(run.date, run.suite, run.kspec, list(run.clients), run.absent)
    _write_struct(folder / "run.json", played)
    for client in run.clients:
        _write_struct(_path(folder, client), _trimmed(client, run, sentences, excerpts))


def add(run: Run, sentences: Sentences, excerpts: Excerpts, folder: Path = RESULTS) -> None:
    """Replace the data of the clients and cases of a run, and keep the others. A client that the
    data have must have the same release there."""
    played = msgspec.json.decode((folder / "run.json").read_bytes(), type=_Played)
    numbers = {case.id: case.number for case in run.cases}
    for client in run.clients:
        path = _path(folder, client)
        new = _trimmed(client, run, sentences, excerpts)
        if client in played.clients:
            old = msgspec.json.decode(path.read_bytes(), type=_Client)
            if old.version != new.version:
                raise KspecError(
                    f"the data of {client} are those of {old.version}, not {new.version}"
                )
            cases = {numbers[each.case] for each in run.results if each.client == client}
            new = _merged(old, new, cases)
        _write_struct(path, new)
    order = {each.name: place for place, each in enumerate(CLIENTS)}
    clients = sorted(
        {**dict.fromkeys(played.clients), **run.clients}, key=lambda n: order.get(n, -1)
    )
    _write_struct(folder / "run.json", msgspec.structs.replace(played, clients=clients))


def _merged(old: _Client, new: _Client, played: Collection[str]) -> _Client:
    def whole(before: Mapping[str, _T], now: Mapping[str, _T]) -> dict[str, _T]:
        kept = {number: each for number, each in before.items() if number not in played}
        found = {**kept, **now}
        return {number: found[number] for number in _suite() if number in found}

    verdicts = whole(_verdicts(old), _verdicts(new))
    return _Client(
        client=new.client,
        version=new.version,
        language=new.language,
        others={each: _grouped(verdicts, each) for each in _PLAIN},
        options=new.options,
        raw_calls=new.raw_calls,
        failures=whole(old.failures, new.failures),
        advice=whole(old.advice, new.advice),
        unsteady=whole(old.unsteady, new.unsteady),
    )


def _grouped(verdicts: Mapping[str, Verdict], verdict: Verdict) -> dict[str, str]:
    numbers = [number.split("/") for number, each in verdicts.items() if each == verdict]
    return {
        group: " ".join(number for _, number in found)
        for group, found in groupby(numbers, lambda each: each[0])
    }


def _verdicts(data: _Client) -> dict[str, Verdict]:
    return {
        f"{group}/{number}": verdict
        for verdict, groups in data.others.items()
        for group, numbers in groups.items()
        for number in numbers.split()
    }


def _write_struct(path: Path, value: msgspec.Struct) -> None:
    text = json.dumps(msgspec.to_builtins(value), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", "utf-8")


def _path(folder: Path, client: str) -> Path:
    return folder / Path(page_name(client)).with_suffix(".json").name


def _trimmed(client: str, run: Run, sentences: Sentences, excerpts: Excerpts) -> _Client:
    facts = run.clients[client]
    causes = causes_of(client, run, sentences).values() if client in MAINTAINERS else ()
    shown = {failures[0][0].id for failures in causes}
    numbers = {case.id: case.number for case in run.cases}
    return _Client(
        client=client,
        version=facts.version,
        language=facts.language,
        others={verdict: _by_group(client, run, verdict) for verdict in _PLAIN},
        options=facts.options,
        raw_calls=facts.raw_calls,
        failures={
            case.number: _Failure(
                severity=each.severity,
                broken=_broken(each),
                variants=_failed_variants(each),
                why="" if case.number in sentences.get(client, {}) else in_one_line(each.why),
                traffic=list(excerpts(each)) if case.id in shown else [],
            )
            for case, each in run.with_verdict(client, "fail")
        },
        advice={
            case.number: _broken(each) for case, each in run.with_verdict(client, "non-strict")
        },
        unsteady={
            numbers[each.case]: in_one_line(each.unsteady)
            for each in run.results
            if each.client == client and each.unsteady
        },
    )


def _by_group(client: str, run: Run, verdict: Verdict) -> dict[str, str]:
    cases = [case for case, _ in run.with_verdict(client, verdict)]
    return {
        group: " ".join(case.number.removeprefix(f"{group}/") for case in found)
        for group, found in groupby(cases, lambda case: case.group)
    }


def _broken(result: RunResult) -> list[str]:
    rules = {
        f"{finding.level}: {finding.says}": None
        for variant in result.variants
        for finding in variant.findings
        if finding.broken
    }
    return list(rules)


def _failed_variants(result: RunResult) -> list[str]:
    failed = [variant.name for variant in result.variants if variant.verdict == "fail"]
    return failed if len(failed) < len(result.variants) else []


# ---- from data to a run --------------------------------------------------------------------------


def read(folder: Path = RESULTS) -> tuple[Run, Excerpts]:
    """Read the data as a run, with the excerpts of its failures. All broken rules of a failure are
    in the first variant that failed."""
    played = msgspec.json.decode((folder / "run.json").read_bytes(), type=_Played)
    clients = {
        client: msgspec.json.decode(_path(folder, client).read_bytes(), type=_Client)
        for client in played.clients
    }
    results = [each for client in clients.values() for each in _results(client)]
    present = {each.case for each in results}
    run = Run(
        format=FORMAT,
        date=played.date,
        clients={client: _facts(client, results, data) for client, data in clients.items()},
        absent=played.absent,
        cases=[_case(each) for each in _suite().values() if each.id in present],
        results=results,
        suite=played.suite,
        kspec=played.kspec,
    )
    numbers = {case.id: case.number for case in run.cases}
    return run, lambda each: clients[each.client].failures[numbers[each.case]].traffic


@cache
def _suite() -> Mapping[str, CaseFile]:
    """The cases by number, such as ``framing/002``."""
    return {_case(each).number: each for each in load_cases()}


def _case(file: CaseFile) -> RunCase:
    case = file.case
    sources = list(resolved(case.source))
    return RunCase(file.id, case.title, case.source, case.about.strip(), sources)


def _facts(client: str, results: Sequence[RunResult], data: _Client) -> ClientFacts:
    verdicts: dict[str, int] = {}
    for each in results:
        if each.client == client:
            verdicts[each.verdict] = verdicts.get(each.verdict, 0) + 1
    return ClientFacts(data.version, data.language, verdicts, data.options, data.raw_calls)


def _results(data: _Client) -> Iterator[RunResult]:
    """Yield the client's results in the order of the cases."""
    verdicts = _verdicts(data)
    for number, file in _suite().items():
        unsteady = data.unsteady.get(number, "")
        if number in data.failures:
            yield _failed(data.client, file, data.failures[number], unsteady)
        elif number in data.advice:
            variant = RunVariant("", "non-strict", _findings(data.advice[number]))
            yield RunResult(data.client, file.id, "non-strict", "", unsteady, [variant])
        elif number in verdicts:
            yield RunResult(data.client, file.id, verdicts[number], "", unsteady, [])


def _failed(client: str, file: CaseFile, data: _Failure, unsteady: str) -> RunResult:
    variants = [
        RunVariant(
            each.name, "pass" if data.variants and each.name not in data.variants else "fail", []
        )
        for each in file.variants
    ]
    first = next((n for n, each in enumerate(variants) if each.verdict == "fail"), 0)
    variants[first] = RunVariant(variants[first].name, "fail", _findings(data.broken))
    return RunResult(client, file.id, "fail", data.why, unsteady, variants, data.severity)


def _findings(broken: Sequence[str]) -> list[RunFinding]:
    pairs = (each.split(": ", 1) for each in broken)
    return [RunFinding(level, says, level.endswith("_not"), "") for level, says in pairs]


# ---- pages ---------------------------------------------------------------------------------------


def published() -> Mapping[str, Sequence[str]]:
    """The ids of the cases that each client failed."""
    run, _ = read()
    failed = {name: [case.id for case, _ in run.with_verdict(name, "fail")] for name in run.clients}
    return {name: cases for name, cases in failed.items() if cases}


@cache
def pages() -> Mapping[str, str]:
    """Map paths in ``docs`` to pages: the summary, the cases, a page for each client, and those for
    maintainers."""
    run, excerpts = read()
    sentences = read_sentences(FINDINGS)
    cases = {each.id: each for each in _suite().values()}
    found = as_pages(run, sentences)
    return {f"reference/conformance/{name}": text for name, text in found.items()} | {
        f"reference/maintainers/{page_name(client)}": as_markdown(
            findings_of(client, run, sentences, cases, excerpts)
        )
        for client in MAINTAINERS
        if client in run.clients
    }


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["known"]:
            sys.stdout.write(json.dumps(published(), indent=1) + "\n")
        case ["write" | "add" as command, folder]:
            run, sentences = read_run(Path(folder) / "results.json"), read_sentences(FINDINGS)
            put = write if command == "write" else add
            put(run, sentences, excerpts_in(Path(folder)))
            run = read()[0] if command == "add" else run
            report_sentences(run, sentences, FINDINGS.name)
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
