"""``kspec run``, ``list``, ``clients``, ``defects``, ``prove``.

The exit status of ``run`` is 0 if every failure is in the baseline, and 1 if one is not or if fewer
cases could be judged than required. It is 2 for bad usage, an invalid case file or baseline among
it, 3 if the run itself failed, and 128 plus the signal's number if a signal ended it. The report is
written in each of these cases but bad usage.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Final, NoReturn

import click
from rich.table import Table

from kproto.cli.completing import starting_with
from kproto.cli.console import Console
from kproto.cli.outputs import OutputFile, OutputFolder
from kproto.cli.program import program
from kproto.cli.run import run
from kproto.cli.tables import print_table
from kproto.cli.terminal import echo, echo_json
from kproto.errors import KprotoError
from kproto.journal import Entry, JournalWriter
from kproto.outputs import open_folder_output
from kproto.tools.texts import counted
from kspec.cli.publish import FINDINGS, read_sentences
from kspec.client_catalog import CLIENTS
from kspec.defects.catalog import DEFECTS
from kspec.errors import KspecError, own_failure
from kspec.report import (
    as_client_html,
    as_html,
    as_json,
    as_junit,
    client_page_path,
    journal_path,
    resolved,
)
from kspec.results import Coverage, Greeting, Report, Result, coverage_of, new_failures
from kspec.runner import schedule
from kspec.runner.baseline import read_baseline, write_baseline
from kspec.runner.bystanders import ByCommand, ByHand
from kspec.runner.clients import select_clients, words_of
from kspec.runner.files import CASES, choose, load_cases
from kspec.runner.processes import interruptible
from kspec.runner.proof import prove

__all__ = ["main"]

_STYLES = {
    "pass": "green",
    "non-strict": "yellow",
    "informational": "blue",
    "fail": "red",
    "error": "bold red",
    "unsupported": "dim",
}


RUN_FAILED: Final = 3
"""The exit status of a run that did not do what it is for."""

_REASONS: Final = 3
"""How many reasons for *unsupported* the end of a run prints for each client."""

commands = program(
    "kspec",
    "Test Kafka clients for conformance.\n\nNumbered cases, each based on a KIP or the protocol "
    "guide, run against real clients on a mock cluster.",
    {
        "compare": "kspec.cli.compare:compare_command",
        "holes": "kspec.cli.holes:holes_command",
        "publish": "kspec.cli.publish:publish_command",
        "report": "kspec.cli.report:report_command",
        "vectors": "kspec.cli.vectors:vectors_command",
    },
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit. Errors exit with 2: 1 says that a client failed a case."""
    run(commands, "kspec", arguments, error_status=2)


def case_ids(context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Complete the id of a case in ``--cases``."""
    folder = context.params.get("folder") or CASES
    try:
        return starting_with(incomplete, (each.id for each in load_cases(Path(folder))))
    except KprotoError:
        return []


def client_names(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Complete a client that `kspec run` accepts."""
    names = ["reference", *(each.name for each in CLIENTS)]
    return starting_with(incomplete, [*names, *(f"wrong:{name}" for name in DEFECTS)])


_folder = click.option(
    "--cases",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=CASES,
    help="Folder of your own cases, used instead of the suite's.",
)


@commands.command("list")
@click.argument("wanted", nargs=-1, metavar="[CASE|GLOB]...", shell_complete=case_ids)
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON document.")
@_folder
def list_cases(wanted: tuple[str, ...], as_lines: bool, folder: Path) -> None:
    """List the cases: id, title and source."""
    cases = choose(load_cases(folder), wanted)
    if as_lines:
        rows = [
            {
                "id": each.id,
                "group": each.group,
                "title": each.case.title,
                "source": each.case.source,
                "sources": [asdict(source) for source in resolved(each.case.source)],
                "about": each.case.about,
                "since": each.case.since,
                "profile": each.case.profile,
                "variants": [variant.name for variant in each.variants if variant.name],
                "wrong": list(each.case.defects),
            }
            for each in cases
        ]
        echo_json(rows, indent=1)
        return
    table = Table("case", "title", "source", box=None)
    for each in cases:
        table.add_row(each.id, each.case.title, each.case.source)
    print_table(table, ("title", "source"))
    echo(counted(len(cases), "case"))


@commands.command("clients")
def list_clients() -> None:
    """List the clients that the suite can install."""
    table = Table("client", "release", "language", "engine", "needs", box=None)
    for each in CLIENTS:
        needs = ", ".join(each.toolchains) or "-"
        table.add_row(
            each.name, each.release or "-", each.language, each.engine or "its own", needs
        )
    print_table(table, ("needs",))


@commands.command("misbehaviours")
def list_defects() -> None:
    """List the defects that prove that cases can fail."""
    table = Table("name", "defect", box=None)
    for name, each in sorted(DEFECTS.items()):
        table.add_row(name, each.about)
    print_table(table, ("defect",))


@commands.command("prove")
@click.argument("wanted", nargs=-1, metavar="[CASE|GLOB]...", shell_complete=case_ids)
@click.option("--jobs", type=click.IntRange(1, 64), default=16, show_default=True)
@_folder
def prove_cases(wanted: tuple[str, ...], jobs: int, folder: Path) -> None:
    """Show that each case can fail.

    The reference client must pass it. The defect it names must fail it, and no other
    defect of its group may.
    """
    _silence_the_mock()
    every = load_cases(folder)
    cases = choose(every, wanted)
    flaws = asyncio.run(prove(cases, every, jobs=jobs))
    for flaw in flaws:
        echo(str(flaw))
    echo(f"{counted(len(cases), 'case')}, {counted(len(flaws), 'flaw')}")
    sys.exit(1 if flaws else 0)


@commands.command("run")
@click.option("--client", "names", multiple=True, metavar="NAME", shell_complete=client_names,
              help="Client to run, as listed by `kspec clients`; NAME@RELEASE is another release, "
                   "`reference` and `wrong:NAME` work, too. Repeat it for several; the default is "
                   "all.")  # fmt: skip
@click.option("--adapter", "adapters", multiple=True, metavar="CMD",
              help="Your own client: a program that speaks the protocol of "
                   "`kspec help adapters`.")  # fmt: skip
@click.option("--command", "programs", multiple=True, metavar="CMD",
              help="Program to run for each call; {bootstrap} in it stands for the address. "
                   "Only its traffic is judged.")  # fmt: skip
@click.option(
    "--manual",
    is_flag=True,
    help="Print the address and wait for Enter, for a client started by hand.",
)
@click.option(
    "--case",
    "wanted",
    multiple=True,
    metavar="ID|GLOB",
    shell_complete=case_ids,
    help="Case to run. Repeat it for several; the default is all.",
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    metavar="ID|GLOB",
    shell_complete=case_ids,
    help="Case to leave out. Repeat it for several.",
)
@click.option("--baseline", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="File of known failures; only others make the exit status 1.")  # fmt: skip
@click.option("--write-baseline", "write_baseline_to",
              type=OutputFile(path_type=Path, may_replace_input=True),
              help="Write this run's failures to a file; entries for what was not run are "
                   "kept.")  # fmt: skip
@click.option("--require-coverage", "required", type=click.FloatRange(0, 100), default=0,
              metavar="PERCENT",
              help="Share of the cases that has to be judged for each client; less makes the exit "
                   "status 1.")  # fmt: skip
@click.option("--strict", is_flag=True,
              help="Require that each case is judged: --require-coverage 100.")  # fmt: skip
@click.option("--again/--once", default=True, show_default=True,
              help="Play a failed case that is not in the baseline once more at the end; the "
                   "second play counts.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 64), default=schedule.JOBS, show_default=True,
              help="Number of plays to run in parallel.")  # fmt: skip
@click.option("--out", type=OutputFolder(path_type=Path),
              help="Folder for results.json, junit.xml, report.html, a page per client and the "
                   "journals.")  # fmt: skip
@click.option("--verbose", "-v", is_flag=True, help="Print a line per play, whatever its verdict.")
@_folder
def run_cases(
    names: tuple[str, ...],
    adapters: tuple[str, ...],
    programs: tuple[str, ...],
    manual: bool,
    wanted: tuple[str, ...],
    excluded: tuple[str, ...],
    baseline: Path | None,
    write_baseline_to: Path | None,
    required: float,
    strict: bool,
    again: bool,
    jobs: int,
    out: Path | None,
    verbose: bool,
    folder: Path,
) -> None:
    """Run cases against clients and report the results.

    The exit status is 0 if every failure is in the baseline, 1 if one is not, 2 for bad usage, 3 if
    the run itself failed, such as a case that ended with an error.
    """
    _silence_the_mock()
    console = _console()
    cases = choose(load_cases(folder), wanted, excluded)
    for each in programs:
        words_of("--command", each)
        if "{bootstrap}" not in each:
            raise KspecError(
                f"--command {each!r}: {{bootstrap}} is missing; it stands for the address of the "
                "cluster, which differs from case to case"
            )
    known = read_baseline(baseline) if baseline is not None else {}
    clients: list[schedule.ClientUnderTest] = [
        ByCommand("command" if len(programs) == 1 else f"command {number}", each)
        for number, each in enumerate(programs, 1)
    ]
    selections = {
        client.name: f"--command {shlex.quote(each)}"
        for client, each in zip(clients, programs, strict=True)
    }
    clients += [ByHand()] * manual
    selections |= {each.name: "--manual" for each in clients if isinstance(each, ByHand)}
    absent: dict[str, str] = {}
    if names or adapters or not clients:
        with console.status("") as status:
            found, absent = select_clients(names, adapters, status.update)
        clients += found
        selections |= {
            client.name: f"--adapter {shlex.quote(each)}"
            for client, each in zip(found[len(found) - len(adapters) :], adapters, strict=True)
        }
    for name, why in absent.items():
        console.print(f"{name} is absent: {why}", style="yellow")
    greetings: dict[str, Greeting] = {}
    started = time.monotonic()

    def on_result(result: Result) -> None:
        if (
            verbose
            or result.unsteady
            or result.judgement.verdict in ("error", "fail", "non-strict")
        ):
            _print_result(console, result)

    kept: dict[tuple[str, str], Result] = {}
    ended = 0
    try:
        results = interruptible(
            schedule.run(
                clients,
                cases,
                jobs=1 if manual else jobs,
                on_result=on_result,
                on_greeting=greetings.__setitem__,
                again=lambda result: (
                    again
                    and not manual
                    and (
                        result.judgement.verdict == "error"
                        or bool(new_failures([result], known)[0])
                    )
                ),
                kept=kept,
            )
        )
    except SystemExit as signal:
        ended = int(signal.code or 0)
        results = schedule.whole_results(clients, cases, kept, "the run was interrupted before")
    except Exception as error:
        ended = RUN_FAILED
        echo(f"kspec: the run failed: {own_failure(error)}", err=True)
        results = schedule.whole_results(clients, cases, kept, "the run failed before")
    new, stale = new_failures(results, known)
    own_cases = "" if folder == CASES else f" --cases {shlex.quote(str(folder))}"
    report = Report(
        clients=[each.name for each in clients],
        cases=cases,
        results=results,
        greetings=greetings,
        absent=absent,
        known=known,
        stale=stale,
        seconds=time.monotonic() - started,
        date=datetime.now(UTC).date().isoformat(),
        selections={
            each.name: selections.get(each.name, f"--client {each.name}") + own_cases
            for each in clients
        },
    )
    # Without a client, the report of an earlier run stays.
    problems = list(_write(report, out)) if out is not None and results else []
    if write_baseline_to is not None:
        problems += _attempt("the baseline", partial(write_baseline, write_baseline_to, results))
    for problem in problems:
        echo(f"kspec: {problem}", err=True)
    _sum_up(console, report, new, baseline)
    least = 100.0 if strict else required
    narrow = [name for name, groups in coverage_of(results).items() if groups[""].percent < least]
    for name in narrow:
        console.print(f"{name}: less than {least:g} % of the cases were judged", style="red")
    errors = any(each.judgement.verdict == "error" for each in results)
    if problems or errors or set(absent) & set(names) or not clients:
        ended = ended or RUN_FAILED
    sys.exit(ended or (1 if new or narrow else 0))


def _silence_the_mock() -> None:
    """Cases withhold APIs on purpose, and the verdict says which fault failed."""
    for name in ("unserved", "faults"):
        logging.getLogger(f"mockbroker.{name}").setLevel(logging.ERROR)


def _print_result(console: Console, result: Result) -> None:
    verdict = result.judgement.verdict
    line = f"{verdict:13} {result.client:18} {result.case.id}"
    lines = [line]
    if result.judgement.why:
        lines.append(f"              {result.judgement.why}")
    if result.unsteady:
        lines.append(f"              failed at first: {result.unsteady}")
    for each in lines:
        console.print(each, style=_STYLES[verdict])


def _sum_up(console: Console, report: Report, new: Sequence[Result], baseline: Path | None) -> None:
    table = Table("client", "version", *_STYLES, "judged", box=None)
    coverage = coverage_of(report.results)
    for name in report.clients:
        greeting = report.greetings.get(name)
        counts = [
            sum(e.client == name and e.judgement.verdict == verdict for e in report.results)
            for verdict in _STYLES
        ]
        judged = coverage.get(name, {}).get("", Coverage())
        release = "" if greeting is None else greeting.release_of(name)
        table.add_row(name, release, *map(str, counts), f"{judged.percent:.0f} %")
    print_table(table, console=console)
    for line in _unsupported(report):
        console.print(line, style=_STYLES["unsupported"])
    for client, case in report.stale:
        console.print(f"stale in the baseline: {client} no longer fails {case}", style="yellow")
    failures = sum(each.judgement.verdict == "fail" for each in report.results)
    errors = sum(each.judgement.verdict == "error" for each in report.results)
    if errors:
        console.print(
            f"{counted(errors, 'case')} ended with an error, which is not a verdict on the client",
            style=_STYLES["error"],
        )
    beyond = f", {len(new)} not in {baseline}" if baseline is not None else ""
    console.print(
        f"{counted(len(report.cases), 'case')}, {counted(len(report.clients), 'client')}, "
        f"{report.seconds:.0f} s: {counted(failures, 'failure')}{beyond}"
    )


def _unsupported(report: Report) -> Iterator[str]:
    """Say of the user's own clients why cases were not judged, the most frequent reasons first."""
    for name in report.clients:
        if report.selections.get(name, "").startswith("--client "):
            continue
        why = Counter(
            each.judgement.why
            for each in report.results
            if each.client == name and each.judgement.verdict == "unsupported"
        )
        for reason, count in why.most_common(_REASONS):
            yield f"{counted(count, 'case')} unsupported by {name}: {reason}"
        if len(why) > _REASONS:
            yield f"and {counted(len(why) - _REASONS, 'other reason')}, which -v prints"


def _write(report: Report, out: Path) -> Iterator[str]:
    """Write the files of a run, all or none. Yield what is wrong with one that cannot be made; the
    others are written all the same."""
    sentences = read_sentences(FINDINGS)
    pages: dict[str, Callable[[], str]] = {
        "results.json": partial(as_json, report),
        "junit.xml": partial(as_junit, report),
        "report.html": partial(as_html, report, sentences),
    }
    for client in report.clients:
        pages[client_page_path(client)] = partial(as_client_html, report, client, sentences)
    for result in report.results:
        for number, variant in enumerate(result.variants):
            if variant.entries:
                pages[journal_path(result, number)] = partial(_journal, variant.entries)
    problems: list[str] = []

    def publish() -> None:
        with open_folder_output(out) as folder:
            for name, page in pages.items():
                try:
                    text = page()
                except Exception as error:
                    problems.append(f"{name} is not written: {own_failure(error)}")
                else:
                    folder.write(name, text)

    yield from _attempt(str(out), publish)
    yield from problems


def _attempt(name: str, work: Callable[[], object]) -> Iterator[str]:
    """Yield why the work failed."""
    try:
        work()
    except Exception as error:
        yield f"{name} is not written: {own_failure(error)}"


def _journal(entries: Iterable[Entry]) -> str:
    lines = StringIO()
    writer = JournalWriter(lines)
    for entry in entries:
        writer.write(entry)
    return lines.getvalue()


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 150)
