"""``python -m demo``: run every real client that this machine has against a mock cluster, step by
step.

The exit status is 0 if every step that ran had the expected outcome; 1 if a step differed, if
nothing ran, or if a client is missing that ``--client`` or ``KPROTO_REQUIRE`` names; 2 on bad
usage.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from demo.catalog import CLIENTS, Client
from demo.catalog import client as client_named
from demo.cluster import start
from demo.data import play_data
from demo.drivers import DriverError, drive
from demo.recording import Recording
from demo.screen import Terminal
from demo.story import STEPS, Mark, Outcome, run
from demo.tools import play_tools
from demo.wire import PROFILES, Profile
from kproto.cli.console import Console
from kproto.cli.outputs import OutputFile
from kproto.cli.terminal import guard_streams
from kproto.errors import AbsentError
from kproto.journal import Entry
from kproto.outputs import OutputError, write_output
from kproto.safe_text import json_text
from kspec.runner.install import Launch, install
from mockbroker.cli.journals import JOURNAL_FILE, journal_sink

Row = tuple[Client, Profile, Mapping[str, Outcome]]

PIPED_WIDTH = 150
"""Width of the output, in columns, without a terminal."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--client",
    "names",
    multiple=True,
    type=click.Choice([each.name for each in CLIENTS]),
    help="Run only this client. Repeatable.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice([each.name for each in PROFILES]),
    help="Run only against this release. Repeatable.",
)
@click.option("--list", "only_list", is_flag=True, help="List the clients and stop.")
@click.option(
    "--journal",
    type=JOURNAL_FILE,
    help="Also write all frames to a capture or a journal, in place of an earlier one.",
)
@click.option("--quiet", is_flag=True, help="Print only the table at the end.")
@click.option(
    "--json",
    "json_path",
    type=OutputFile(path_type=Path),
    help="Also write the outcomes to this file, as JSON.",
)
def main(
    names: tuple[str, ...],
    profiles: tuple[str, ...],
    only_list: bool,
    journal: Path | None,
    quiet: bool,
    json_path: Path | None,
) -> None:
    """Drive real Kafka clients through a reassignment, a cancellation and an election on mock
    clusters of an old and of the newest Kafka, and check every outcome. A producer, a consumer
    and Kafka's own tools follow, unless --client or --profile chooses a part."""
    guard_streams()
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    clients = [client_named(name) for name in dict.fromkeys(names)] or list(CLIENTS)
    if only_list:
        console.print(_listing())
        return
    started = time.monotonic()
    launches, absent = _install(clients, console)
    installed = time.monotonic()
    told = Terminal(Console(quiet=True) if quiet else console)
    chosen = [each for each in PROFILES if not profiles or each.name in profiles]
    if launches:
        told.opening(len(launches), chosen)
    rows: list[Row] = []
    is_recorded = True
    try:
        with _sink(journal) as write:
            recording = Recording(write)
            rows += (
                (client, profile, _play(client, launches[client.name], profile, told, recording))
                for client in clients
                if client.name in launches
                for profile in chosen
            )
    except OutputError as error:
        raise click.UsageError(str(error)) from None
    except click.exceptions.Exit:
        is_recorded = False
    Terminal(console).table(rows, absent, clients)
    parts = []
    if not (names or profiles):
        parts = [play_data(console.print, told.produced), play_tools(console.print)]
    # A client named with --client has to run; others only if KPROTO_REQUIRE says so.
    required = [name for name in absent if name in names or _is_required(client_named(name))]
    right = bool(rows) and not required and _all_right(rows) and False not in parts
    right = right and is_recorded
    seconds = time.monotonic() - installed
    console.print(
        f"{len(launches)} of {len(clients)} clients in {seconds:.0f} s"
        f" (getting them ready: {installed - started:.0f} s). "
        + ("All checks passed." if right else "Some checks failed.")
    )
    if required:
        console.print(f"Required by --client or KPROTO_REQUIRE, and absent: {', '.join(required)}")
    if json_path is not None:
        write_output(json_path, _as_json(rows, absent, right, seconds))
    sys.exit(0 if right else 1)


def _sink(journal: Path | None) -> AbstractContextManager[Callable[[Entry], None]]:
    if journal is None:
        return nullcontext(lambda entry: None)
    return journal_sink(journal, overwrite=True)


def _install(
    clients: Sequence[Client], console: Console
) -> tuple[dict[str, Launch], dict[str, str]]:
    """Install the clients: returns how to start each one, and the reason for each that cannot be
    had."""
    launches: dict[str, Launch] = {}
    absent: dict[str, str] = {}
    with console.status("") as status:
        for client in clients:
            status.update(f"getting {client.name} {client.release} ready (first time: a download)")
            try:
                launches[client.name] = install(client.installed)
            except AbsentError as error:
                absent[client.name] = str(error)
    return launches, absent


def _play(
    client: Client, launch: Launch, profile: Profile, told: Terminal, recording: Recording
) -> Mapping[str, Outcome]:
    """Play the story with one client on a new cluster of one release."""
    try:
        with (
            start(profile.name, recording.cluster()) as cluster,
            drive(launch, cluster.bootstrap, client.client_id) as driver,
        ):
            told.client(client, driver.version, profile)
            return run(client, profile, driver, cluster, told)
    except DriverError as error:
        return dict.fromkeys((step.name for step in STEPS), Outcome("wrong", str(error)))


def _all_right(rows: Sequence[Row]) -> bool:
    return all(outcome.mark != "wrong" for _, _, outcomes in rows for outcome in outcomes.values())


def _is_required(client: Client) -> bool:
    """Whether ``KPROTO_REQUIRE`` names the client or its toolchain, or is ``all``."""
    wanted = {part.strip() for part in os.environ.get("KPROTO_REQUIRE", "").split(",")}
    return bool(wanted & {"all", client.name, *client.toolchains})


def _listing() -> Table:
    table = Table("client", "release", "language", "needs", "steps it has no call for")
    for client in CLIENTS:
        needs = ", ".join(client.toolchains) or "-"
        lacks = ", ".join(client.lacks) or "-"
        table.add_row(client.name, client.release, client.language, needs, lacks)
    return table


def _as_json(rows: Sequence[Row], absent: Mapping[str, str], right: bool, seconds: float) -> str:
    marks: list[Mark] = ["right", "wrong", "gap", "lacking"]
    document = {
        "right": right,
        "seconds": round(seconds, 1),
        "marks": marks,
        "steps": {step.name: step.title for step in STEPS},
        "rows": [
            {
                "client": client.name,
                "release": client.release,
                "language": client.language,
                "profile": profile.name,
                "outcomes": {name: asdict(outcome) for name, outcome in outcomes.items()},
            }
            for client, profile, outcomes in rows
        ],
        "absent": dict(absent),
    }
    return json_text(document, indent=2) + "\n"


if __name__ == "__main__":
    main()
