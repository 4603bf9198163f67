"""``mockbroker ctl URL journal`` and ``frame``: what was said on the wire, for eyes or as JSON."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from mockbroker.cli.control_client import ControlClient

__all__ = ["frame", "journal"]

_BYTES_A_LINE: Final = 12
_HEX_WIDTH: Final = 3 * _BYTES_A_LINE

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command("journal")
@click.option("--api", help="Only this api key, or name.")
@click.option("--broker", type=click.IntRange(0), help="Only at this broker.")
@click.option("--connection", type=click.IntRange(0), help="Only on this connection.")
@click.option("--client-id", help="Only of this client id.")
@click.option("--client-software", help="Only of clients that say they are this.")
@click.option("--direction", type=click.Choice(["request", "response", "event"]))
@click.option("--event", help="Only entries marked so, as in unsupported.")
@click.option("--after", type=click.IntRange(0), help="Leave out entries up to this sequence.")
@click.option("--limit", type=click.IntRange(0), help="The first so many.")
@click.option("--last", type=click.IntRange(0), help="The newest so many.")
@click.option("--follow", is_flag=True, help="Go on with what is said from now on.")
@_as_json
@click.pass_obj
def journal(client: ControlClient, /, follow: bool, as_json: bool, **filters: Any) -> None:
    """Show what was said on the wire. With --follow, JSON is a line an entry. How many entries
    the journal has let go of, whatever is asked for, is on stderr."""
    last, limit = filters.pop("last"), filters.pop("limit")
    entries: list[dict[str, Any]] = []
    if not follow or last is not None:
        entries, dropped = client.get_with(
            "Journal-Dropped", "/journal", last=last, limit=limit, **filters
        )
        if dropped not in (None, "0"):
            told = f"the journal has dropped its oldest entries, {dropped} of them"
            click.echo(f"mockbroker: {told} (serve --journal-entries, --journal-bytes)", err=True)
    if as_json and not follow:
        click.echo(json.dumps(entries))
        return
    for entry in entries:
        _show_entry(entry, as_json)
    if not follow:
        return
    if entries:
        filters["after"] = entries[-1]["sequence"]
    for event, data in client.follow("/journal/stream", **filters):
        if event == "entry":
            _show_entry(data, as_json)
        elif event == "gap":
            told = f"entries {data['after'] + 1} to {data['next'] - 1} were dropped"
            click.echo(f"mockbroker: {told}", err=True)


def _show_entry(entry: dict[str, Any], as_json: bool) -> None:
    click.echo(json.dumps(entry) if as_json else _describe_entry(entry))


def _describe_entry(entry: dict[str, Any]) -> str:
    arrow = {"request": "<-", "response": "->"}.get(entry["direction"], "--")
    parts = [f"{entry['sequence']:>6} broker {entry['broker_id']} {arrow}"]
    if entry.get("api_key") is not None:
        parts.append(f"api {entry['api_key']} v{entry.get('api_version')}")
    if entry.get("api"):
        parts.append(entry["api"])
    if entry.get("event"):
        parts.append(f"[{entry['event']}]")
    if entry.get("note"):
        parts.append(entry["note"])
    if "body" in entry:
        parts.append(_short(entry["body"])[:200])
    return " ".join(parts)


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@click.command("frame")
@click.argument("sequence", type=click.IntRange(1))
@_as_json
@click.pass_obj
def frame(client: ControlClient, sequence: int, as_json: bool) -> None:
    """Show the bytes of one entry, a line a field."""
    answer = client.get(f"/journal/{sequence}")
    if as_json:
        click.echo(json.dumps(answer))
        return
    click.echo(_describe_entry(answer["entry"]))
    data = bytes.fromhex(answer["hex"])
    for row in answer["fields"]:
        if row["leaf"]:
            value = "" if row["value"] is None else _short(row["value"])[:60]
            click.echo(_line(row["offset"], data, row["length"], f"{row['path']} {value}"))
    if answer["end"] < len(data):
        left = len(data) - answer["end"]
        click.echo(_line(answer["end"], data, left, "(in no field)"))
    if "problem" in answer:
        click.echo(f"!! {answer['problem']}")


def _line(offset: int, data: bytes, length: int, words: str) -> str:
    shown = data[offset : offset + min(length, _BYTES_A_LINE)].hex(" ")
    more = "…" if length > _BYTES_A_LINE else ""
    return f"{offset:>6}  {shown + more:<{_HEX_WIDTH}} {words}".rstrip()
