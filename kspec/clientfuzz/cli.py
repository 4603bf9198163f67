"""``mockbroker fuzz``, which is ``kspec fuzz`` too.

Exit 0 where nothing was found, 1 where something was (or a replay came to the same), 2 where the
client cannot be had (any more) or the command makes no sense, 128 and the signal's number where one
ended it. However it ends, what was met until then is written and told.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import kproto
from kproto.errors import KprotoError
from kspec.catalog import CLIENTS
from kspec.catalog import client as client_named
from kspec.clientfuzz.clients.campaign import Campaign, Found, Result
from kspec.clientfuzz.clients.causes import cause
from kspec.clientfuzz.clients.report import as_document, tell, tell_found
from kspec.clientfuzz.clients.reproducer import read_replay, write_reproducer
from kspec.clientfuzz.clients.session import Session
from kspec.clientfuzz.commands import Ways, add_ways
from kspec.clientfuzz.mutate import KINDS
from kspec.clientfuzz.progress import Ticker
from kspec.errors import KspecError
from kspec.reading import api_key
from kspec.runner.install import Launch, install
from kspec.runner.processes import interruptible

__all__ = ["fuzz"]

_DEFAULT_CASES = 300


@click.group(cls=Ways, invoke_without_command=True)
@click.pass_context
@click.option("--client", "name", metavar="NAME", help="One that the suite can install: see "
              "--list-clients.")  # fmt: skip
@click.option("--command", "--adapter", "command", metavar="CMD",
              help="Your own: a program that speaks the lines of docs/adapters.md.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True)
@click.option("--cases", type=click.IntRange(1), help=f"How many; {_DEFAULT_CASES} unless "
              "--seconds is given.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True),
              help="No new case after that.")  # fmt: skip
@click.option("--api", "apis", metavar="KEY|NAME,...", help="Answers of these api keys alone.")
@click.option("--kind", "kinds", metavar="KIND,...", help="These kinds of mutation alone: see "
              "--list-kinds.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False, path_type=Path),
              help="Write report.json, and a folder for each cause.")  # fmt: skip
@click.option("--replay", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Play one case.json again, in a new process.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 32), default=1, show_default=True,
              help="Processes of the client at once.")  # fmt: skip
@click.option("--timeout", "timeout_ms", type=click.IntRange(50, 60_000), default=1000,
              show_default=True, help="The client's own time-outs, in milliseconds.")  # fmt: skip
@click.option("--hang-after", type=click.FloatRange(1, 600), default=12.0, show_default=True,
              help="Seconds after which a call counts as hung.")  # fmt: skip
@click.option("--memory", "memory_mb", type=click.IntRange(256), default=4096, show_default=True,
              help="The most that the client may allocate, in MiB (Linux).")  # fmt: skip
@click.option("--diff", is_flag=True, expose_value=False, help="As the command diff.")
@click.option("--broker", metavar="ADDRESS", expose_value=False, help="As the command broker.")
@click.option("--list-clients", is_flag=True, help="Print the clients, and exit.")
@click.option("--list-kinds", is_flag=True, help="Print the kinds of mutation, and exit.")
def fuzz(
    context: click.Context,
    name: str | None,
    command: str | None,
    seed: int,
    cases: int | None,
    seconds: float | None,
    apis: str | None,
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
    """Give a real client mutated answers, and watch for crashes, hangs, runaway memory or processor
    time, and wrong results. docs/fuzz-your-client.md tells more."""
    if context.invoked_subcommand is not None:
        return None
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    if list_clients:
        return _list_clients(console)
    if list_kinds:
        return _list_kinds(console)
    try:
        known = read_replay(replay) if replay is not None else None
        if name is None and command is None and known is not None:
            name = known.client or None
        label, launch = _launch(name, command)
        wanted = _api_keys(apis)
        chosen = _kinds(kinds)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"--out: {error.filename}: {error.strerror}") from None

    def session() -> Session:
        return Session(
            launch, timeout_ms=timeout_ms, answer_seconds=hang_after, memory=memory_mb << 20
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
            met=_tell_met,
            told=lambda found: tell_found(console, found),
            ticked=Ticker(_so_far),
        )
        try:
            result = interruptible(campaign.run())
        finally:
            if campaign.result is not None:
                _conclude(console, campaign.result, label, out)
    except KprotoError as error:
        # Of the client, or of its coming up.
        click.echo(f"mockbroker: {error}", err=True)
        sys.exit(2)
    sys.exit(1 if result.findings else 0)


add_ways(fuzz)


async def _replay(console: Console, session: Callable[[], Session], path: Path) -> int:
    known = read_replay(path)
    player = session()
    try:
        learned = await player.learn()
        if known.case.op not in learned.answers:
            raise KspecError(f"the client has no call {known.case.op}, or it fails when healthy")
        outcome = await player.play(known.case, learned, idle=True)
    finally:
        await player.stop()
    console.print(f"{outcome.verdict}: {outcome.message or outcome.answered}", markup=False)
    if outcome.at:
        console.print(f"  innermost: {outcome.at}", markup=False)
    if known.cause:
        again = known.verdict == outcome.verdict
        same = cause(known.case, outcome) == known.cause
        told = "the same cause" if same else "the same verdict" if again else "not what was found"
        console.print(f"  {told}: {known.cause}", markup=False)
    return 1 if outcome.is_finding or (outcome.is_observation and known.cause) else 0


def _tell_met(found: Found) -> None:
    click.echo(f"case {found.number}: {found.cause}", err=True)


def _so_far(result: Result) -> str:
    told = ", ".join(f"{count} {name}" for name, count in result.verdicts.most_common())
    return f"{result.cases} cases: {told}"


def _launch(name: str | None, command: str | None) -> tuple[str, Launch]:
    """Raises KspecError."""
    if (name is None) == (command is None):
        raise KspecError("give --client NAME or --command CMD, one of them")
    if command is not None:
        words = tuple(shlex.split(command))
        if not words:
            raise KspecError("--command is empty")
        return "client", Launch(words, None)
    assert name is not None
    try:
        client = client_named(name)
    except KeyError:
        known = ", ".join(each.name for each in CLIENTS)
        raise KspecError(f"no client is {name!r}; there are {known}") from None
    return client.name, install(client)


def _api_keys(text: str | None) -> set[int]:
    found = set()
    for word in (text or "").split(","):
        if not word.strip():
            continue
        key = api_key(int(word) if word.strip().isdigit() else word.strip())
        if key is None:
            raise KspecError(f"--api: {word.strip()!r} is no api of Kafka's")
        found.add(key)
    return found


def _kinds(text: str | None) -> set[str] | None:
    found = {word.strip() for word in (text or "").split(",") if word.strip()}
    unknown = sorted(found - KINDS.keys())
    if unknown:
        raise KspecError(f"--kind: there is no {', '.join(unknown)}; see --list-kinds")
    return found or None


def _conclude(console: Console, result: Result, label: str, out: Path | None) -> None:
    """Raises KspecError where ``out`` cannot be written."""
    tell(console, result)
    if out is None:
        return
    try:
        folders = _write(result, label, out)
    except OSError as error:
        raise KspecError(f"--out: {error.filename}: {error.strerror}") from None
    for each in result.found:
        if each in result.findings or each.unconfirmed:
            console.print(f"  {folders[each.cause]}", markup=False)


def _write(result: Result, label: str, out: Path) -> dict[str, str]:
    version = result.learned.greeting.version
    folders = {
        each.cause: str(write_reproducer(each, label, version, out)) for each in result.found
    }
    document = json.dumps(as_document(result, folders), indent=1)
    (out / "report.json").write_text(document + "\n", "utf-8")
    return folders


def _list_clients(console: Console) -> None:
    table = Table("client", "release", "language", "engine", "needs", box=None)
    for each in CLIENTS:
        needs = ", ".join(each.toolchains) or "-"
        release = each.release or kproto.__version__
        table.add_row(each.name, release, each.language, each.engine or "its own", needs)
    console.print(table)


def _list_kinds(console: Console) -> None:
    table = Table("kind", "what it is", box=None)
    for name, kind in KINDS.items():
        table.add_row(name, kind.about)
    console.print(table)
