"""``mockbroker fuzz``: fuzz a client, a decoder or a broker.

The exit status is 0 if nothing was found and 1 if something was, or if a replay reproduces its
finding. It is 2 if the client cannot be started or the command line is invalid, and 128 plus the
signal's number if a signal ended the run. An interrupted run still writes and prints its results.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.table import Table

import kproto
from kproto import Dialect
from kproto.cli.completing import starting_with
from kproto.cli.console import Console
from kproto.cli.dialect_option import dialect_option, named_dialect
from kproto.cli.outputs import OutputFolder
from kproto.cli.tables import print_table
from kproto.cli.terminal import echo
from kproto.errors import KprotoError
from kproto.outputs import open_folder_output
from kspec.api_keys import api_key
from kspec.client_catalog import CLIENTS
from kspec.client_catalog import client as client_named
from kspec.clientfuzz.brokers.cli import broker
from kspec.clientfuzz.clients.campaign import Campaign, CauseReport, Result
from kspec.clientfuzz.clients.causes import cause
from kspec.clientfuzz.clients.report import as_document, print_found, print_summary
from kspec.clientfuzz.clients.reproducer import read_replay, write_reproducer
from kspec.clientfuzz.clients.session import Session
from kspec.clientfuzz.corpora_command import seeds_command
from kspec.clientfuzz.decoders.cli import diff
from kspec.clientfuzz.mutate import KINDS
from kspec.clientfuzz.progress import Progress
from kspec.errors import KspecError
from kspec.runner.clients import words_of
from kspec.runner.install import Launch, install
from kspec.runner.processes import interruptible

__all__ = ["fuzz"]

_DEFAULT_CASES = 300


@click.group(invoke_without_command=True)
@click.pass_context
@click.option(
    "--client",
    "name",
    metavar="NAME",
    shell_complete=lambda _context, _option, text: starting_with(
        text, [each.name for each in CLIENTS]
    ),
    help="A client that kspec can install; --list-clients lists them.",
)
@click.option(
    "--command",
    "--adapter",
    "command",
    metavar="CMD",
    help="A client of your own: a program; see `kspec help adapters`.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=1,
    show_default=True,
    help="Seed of the mutations.",
)
@click.option(
    "--cases",
    type=click.IntRange(1),
    help=f"Number of cases to play; {_DEFAULT_CASES} unless --seconds is given.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Start no new case after this time.",
)
@click.option("--api", "apis", metavar="KEY|NAME,...", help="Mutate only answers of these APIs.")
@dialect_option
@click.option(
    "--kind",
    "kinds",
    metavar="KIND,...",
    help="Use only these kinds of mutation; --list-kinds lists them.",
)
@click.option(
    "--out",
    type=OutputFolder(path_type=Path),
    help="Folder for report.json and a reproducer per cause.",
)
@click.option(
    "--replay",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Replay one case.json in a new process.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 32),
    default=1,
    show_default=True,
    help="Number of client processes to run in parallel.",
)
@click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(50, 60_000),
    default=1000,
    show_default=True,
    help="The client's own timeouts, in milliseconds.",
)
@click.option(
    "--hang-after",
    type=click.FloatRange(1, 600),
    default=12.0,
    show_default=True,
    help="Seconds after which a call counts as hung.",
)
@click.option(
    "--memory",
    "memory_mb",
    type=click.IntRange(256),
    default=4096,
    show_default=True,
    help="Memory limit of the client, in MiB (Linux only).",
)
@click.option("--list-clients", is_flag=True, help="List the clients and exit.")
@click.option("--list-kinds", is_flag=True, help="List the kinds of mutation and exit.")
def fuzz(
    context: click.Context,
    name: str | None,
    command: str | None,
    seed: int,
    cases: int | None,
    seconds: float | None,
    apis: str | None,
    dialect_name: str,
    kinds: str | None,
    out: Path | None,
    replay: Path | None,
    jobs: int,
    timeout_ms: int,
    hang_after: float,
    memory_mb: int,
    list_clients: bool,
    list_kinds: bool,
) -> None:
    """Fuzz a real client with mutated answers.

    Finds crashes, hangs, runaway memory or CPU use, and wrong results. See
    `kspec help fuzz-your-client`.
    """
    # Mutated answers make clients request what is not served.
    logging.getLogger("mockbroker.unserved").setLevel(logging.ERROR)
    if context.invoked_subcommand is not None:
        return None
    console = Console(width=None if sys.stdout.isatty() else 150)
    if list_clients:
        return _list_clients(console)
    if list_kinds:
        return _list_kinds(console)
    try:
        known = read_replay(replay) if replay is not None else None
        if name is None and command is None and known is not None:
            name = known.client or None
        label, launch = _launch(name, command)
        dialect = named_dialect(dialect_name)
        wanted = _api_keys(apis, dialect)
        chosen = _kinds(kinds)
    except KprotoError as error:
        raise click.UsageError(str(error)) from None

    def session() -> Session:
        return Session(
            launch,
            timeout_ms=timeout_ms,
            answer_seconds=hang_after,
            memory=memory_mb << 20,
            dialect=dialect,
        )

    try:
        if replay is not None:
            sys.exit(interruptible(_replay(console, session, replay)))
        if cases is None and seconds is None:
            cases = _DEFAULT_CASES
        campaign = Campaign(
            session,
            seed=seed,
            cases=cases,
            seconds=seconds,
            jobs=jobs,
            apis=wanted,
            kinds=chosen,
            on_new_cause=_print_new_cause,
            on_result=lambda found: print_found(console, found),
            on_case=Progress(_progress_line),
        )
        try:
            result = interruptible(campaign.run())
        finally:
            if campaign.result is not None:
                _conclude(console, campaign.result, label, out)
    except KprotoError as error:
        echo(f"mockbroker: {error}", err=True)
        sys.exit(2)
    sys.exit(1 if result.findings else 0)


for command in (diff, broker, seeds_command):
    fuzz.add_command(command)


async def _replay(console: Console, session: Callable[[], Session], path: Path) -> int:
    known = read_replay(path)
    player = session()
    try:
        learned = await player.learn()
        if known.case.op not in learned.answers:
            raise KspecError(f"the client lacks {known.case.op}, or fails on a healthy cluster")
        outcome = await player.play(known.case, learned, idle=True)
    finally:
        await player.stop()
    console.print(f"{outcome.verdict}: {outcome.message or outcome.answered}")
    if outcome.at:
        console.print(f"  innermost: {outcome.at}")
    if known.cause:
        again = known.verdict == outcome.verdict
        same = cause(known.case, outcome) == known.cause
        text = "same cause" if same else "same verdict" if again else "different from the finding"
        console.print(f"  {text}: {known.cause}")
    return 1 if outcome.is_finding or (outcome.is_observation and known.cause) else 0


def _print_new_cause(found: CauseReport) -> None:
    echo(f"case {found.number}: {found.cause}", err=True)


def _progress_line(result: Result) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in result.verdicts.most_common())
    return f"{result.cases} cases: {counts}"


def _launch(name: str | None, command: str | None) -> tuple[str, Launch]:
    """Return the client's name and command. Raises KspecError."""
    if (name is None) == (command is None):
        raise KspecError("give either --client NAME or --command CMD")
    if command is not None:
        return "client", Launch(words_of("--command", command), None)
    assert name is not None
    try:
        client = client_named(name)
    except KeyError:
        known = ", ".join(each.name for each in CLIENTS)
        raise KspecError(f"{name!r} is not a known client; known are {known}") from None
    return client.name, install(client)


def _api_keys(text: str | None, dialect: Dialect) -> set[int]:
    found = set()
    for word in (text or "").split(","):
        if not word.strip():
            continue
        key = api_key(int(word) if word.strip().isdigit() else word.strip(), dialect)
        if key is None:
            raise KspecError(f"--api: {word.strip()!r} is not an API of the dialect {dialect.name}")
        found.add(key)
    return found


def _kinds(text: str | None) -> set[str] | None:
    found = {word.strip() for word in (text or "").split(",") if word.strip()}
    unknown = sorted(found - KINDS.keys())
    if unknown:
        raise KspecError(f"--kind: unknown {', '.join(unknown)}; --list-kinds lists the kinds")
    return found or None


def _conclude(console: Console, result: Result, label: str, out: Path | None) -> None:
    """Print and write the results. Raises KspecError if ``out`` is not writable."""
    print_summary(console, result)
    if out is None:
        return
    try:
        folders = _write(result, label, out)
    except OSError as error:
        raise KspecError(f"--out: {error.filename}: {error.strerror}") from None
    for each in result.found:
        if each in result.findings or each.unconfirmed:
            console.print(f"  {folders[each.cause]}")


def _write(result: Result, label: str, out: Path) -> dict[str, str]:
    version = result.learned.greeting.version
    with open_folder_output(out) as made:
        folders = {
            each.cause: str(out / write_reproducer(each, label, version, made))
            for each in result.found
        }
        made.write("report.json", json.dumps(as_document(result, folders), indent=1) + "\n")
    return folders


def _list_clients(console: Console) -> None:
    table = Table("client", "release", "language", "engine", "needs", box=None)
    for each in CLIENTS:
        needs = ", ".join(each.toolchains) or "-"
        release = each.release or kproto.__version__
        table.add_row(each.name, release, each.language, each.engine or "its own", needs)
    print_table(table, ("needs",), console=console)


def _list_kinds(console: Console) -> None:
    table = Table("kind", "description", box=None)
    for name, kind in KINDS.items():
        table.add_row(name, kind.about)
    print_table(table, ("description",), console=console)
