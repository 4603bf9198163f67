"""``wiredump audit``: find the clients, in captures or in tables made of them, whose requests a
release would refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from kproto.cli.completing import release_names
from kproto.cli.terminal import echo_json
from kproto.errors import UnknownNameError
from kproto.schema.releases import Release, release
from wiredump.cli.making import folder_among, require_tables, tables_of_sources
from wiredump.cli.output import Output
from wiredump.cli.source_options import (
    SourceOptions,
    expanded,
    jobs_option,
    port_option,
    source_options,
)
from wiredump.skipped import skipped_of
from wiredump.tables import require_pyarrow

if TYPE_CHECKING:
    from wiredump.audit import Audit, Client

__all__ = ["audit_command"]


def _release(context: click.Context, option: click.Parameter, value: str) -> Release:
    try:
        return release(value)
    except UnknownNameError as error:
        raise click.BadParameter(str(error), ctx=context, param=option) from None


@click.command("audit")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...|TABLES")
@click.option("--to", "wanted", required=True, callback=_release, metavar="RELEASE",
              shell_complete=release_names,
              help="A release such as kafka-4.1, or kafka-3.9-zk where a release supports both "
                   "KRaft and ZooKeeper. `mockbroker profiles` lists them.")  # fmt: skip
@port_option()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@jobs_option
@source_options
def audit_command(
    captures: tuple[str, ...], wanted: Release, as_json: bool, options: SourceOptions
) -> int:
    """List the clients whose requests a release would refuse, and what they would send instead.

    The exit status is 0 if the release would accept every request seen, and 1 otherwise, also if no
    request could be read.
    """
    captures = expanded(captures)
    folder_among(captures)  # refuses several sources before anything is read
    require_pyarrow()
    # Imported late: --help needs neither the schemas nor pyarrow.
    from wiredump.audit import Observed, audit
    from wiredump.questions.clients import observed_in
    from wiredump.questions.database import FolderTables, require_duckdb

    require_duckdb()

    with tables_of_sources(captures, Observed.TABLES, options, "judged") as (folder, account):
        require_tables(folder, Observed.TABLES)
        found = audit(observed_in(FolderTables(folder))[0].clients(), wanted)
        skipped = skipped_of(account)
        if as_json:
            record = {**_record(found), "skipped": skipped}
            echo_json(record)
        else:
            _show(found, skipped)
    return 1 if found.refused else 0


def _record(found: Audit) -> dict[str, Any]:
    return {
        "to": found.release.name,
        "release": found.release.release,
        "mode": found.release.mode,
        "refused": len(found.refused),
        "clients": [_client_record(client) for client in found.clients],
    }


def _client_record(client: Client) -> dict[str, Any]:
    software = client.software
    return {
        "client_id": client.client_id,
        "software": None
        if software is None
        else {"name": software.name, "version": software.version},
        "connections": client.connections,
        "requests": client.requests,
        "negotiates": client.negotiates,
        "not_judged": client.not_judged,
        "refused": [
            {
                **each._asdict(),
                "served": None
                if each.served is None
                else [each.served.lowest, each.served.highest],
                "instead": each.instead._asdict(),
            }
            for each in client.refused
        ],
    }


def _show(found: Audit, skipped: Mapping[str, int]) -> None:
    output = Output()
    to = f"{found.release.name} ({found.release.release}, {found.release.mode})"
    if found.refused:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("client id", "software", "api", "version", "requests", "served", "instead"):
            table.add_column(name, justify="right" if name == "requests" else "left")
        for client in found.refused:
            for each in client.refused:
                instead = each.instead
                mark = {"seen": "", "between": "?"}.get(instead.why, "")
                version = "" if instead.version is None else f"v{instead.version}{mark}: "
                table.add_row(
                    _shown(client.client_id), _shown(client.software), each.api,
                    f"v{each.version}", str(each.requests),
                    "no" if each.served is None else f"v{each.served}",
                    f"{version}{instead.note}",
                )  # fmt: skip
        output.render(table)
    refused, clients = len(found.refused), len(found.clients)
    not_judged = sum(client.not_judged for client in found.clients)
    output.plain(f"{to} would refuse requests of {refused} of {clients} clients")
    if not_judged:
        output.plain(
            f"not judged: {not_judged} requests between brokers, or subject to configuration"
        )
    if skipped:
        named = ", ".join(f"{count} {what}" for what, count in skipped.items())
        output.plain(f"packets without TCP: {named}")
    output.end()


def _shown(value: object) -> str:
    return "-" if value is None else str(value)
