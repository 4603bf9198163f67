"""``mockbroker ctl URL journal`` and ``frame``: the recorded traffic, as text or as JSON."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from kproto.cli.terminal import echo, echo_json
from kproto.safe_text import json_text
from mockbroker.cli.control_client import ControlClient
from mockbroker.cli.option_types import json_option

__all__ = ["frame", "journal"]

_BYTES_A_LINE: Final = 12
_HEX_WIDTH: Final = 3 * _BYTES_A_LINE


def _api_names(context: click.Context, option: click.Parameter, incomplete: str) -> list[str]:
    # Importing codecs would slow down every other command.
    from kproto.cli.completing import api_names

    return api_names(context, option, incomplete)


@click.command("journal")
@click.option("--api", shell_complete=_api_names, help="Only this API key or name.")
@click.option("--broker", type=click.IntRange(0), help="Only this broker.")
@click.option("--listener", help="Only this listener, such as EXTERNAL.")
@click.option("--connection", type=click.IntRange(0), help="Only this connection.")
@click.option("--client-id", help="Only this client id.")
@click.option("--client-software", help="Only this client software, with or without a version.")
@click.option(
    "--direction",
    type=click.Choice(["request", "response", "event"]),
    help="Only entries of this kind.",
)
@click.option("--event", help="Only entries with this event, such as unsupported.")
@click.option("--after", type=click.IntRange(0), help="Only entries after this sequence number.")
@click.option("--limit", type=click.IntRange(0), help="Only the first LIMIT entries.")
@click.option("--last", type=click.IntRange(0), help="Only the newest LAST entries.")
@click.option("--follow", is_flag=True, help="Print new entries as they arrive.")
@json_option
@click.pass_obj
def journal(client: ControlClient, /, follow: bool, as_json: bool, **filters: Any) -> None:
    """Show the recorded traffic.

    With --follow, JSON has one line per entry. A warning on stderr counts the entries that the
    journal has dropped.
    """
    last, limit = filters.pop("last"), filters.pop("limit")
    entries: list[dict[str, Any]] = []
    if not follow or last is not None:
        entries, dropped = client.get_with(
            "Journal-Dropped", "/journal", last=last, limit=limit, **filters
        )
        if dropped not in (None, "0"):
            warning = f"the journal has dropped its oldest {dropped} entries"
            echo(f"mockbroker: {warning} (serve --journal-entries, --journal-bytes)", err=True)
    if as_json and not follow:
        echo_json(entries)
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
            first, last = data["after"] + 1, data["next"] - 1
            echo(f"mockbroker: entries {first} to {last} were dropped", err=True)


def _show_entry(entry: dict[str, Any], as_json: bool) -> None:
    echo(json_text(entry) if as_json else _describe_entry(entry))


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
@json_option
@click.pass_obj
def frame(client: ControlClient, sequence: int, as_json: bool) -> None:
    """Show the bytes of an entry, field by field."""
    answer = client.get(f"/journal/{sequence}")
    if as_json:
        echo_json(answer)
        return
    echo(_describe_entry(answer["entry"]))
    data = bytes.fromhex(answer["hex"])
    for row in answer["fields"]:
        if row["leaf"]:
            value = "" if row["value"] is None else _short(row["value"])[:60]
            echo(_line(row["offset"], data, row["length"], f"{row['path']} {value}"))
    if answer["end"] < len(data):
        left = len(data) - answer["end"]
        echo(_line(answer["end"], data, left, "(outside all fields)"))
    if "problem" in answer:
        echo(f"!! {answer['problem']}")


def _line(offset: int, data: bytes, length: int, words: str) -> str:
    shown = data[offset : offset + min(length, _BYTES_A_LINE)].hex(" ")
    more = "…" if length > _BYTES_A_LINE else ""
    return f"{offset:>6}  {shown + more:<{_HEX_WIDTH}} {words}".rstrip()
