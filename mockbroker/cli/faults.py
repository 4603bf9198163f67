"""Fault rules on the command line: options of ``mockbroker serve``, and ``ctl URL fault``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

import click
from cloup import option_group

from kproto.cli.terminal import echo, echo_json
from kproto.errors import KprotoError
from kproto.os_errors import os_error_text
from mockbroker.cli.option_types import DURATION, json_option, parse_members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mockbroker.faults.matching import ActiveFault

__all__ = ["fault", "fault_options", "faults_into", "report_unused"]

_MOST_BYTES: Final = 16 << 20
_TEXTS: Final = frozenset(
    {
        "name", "client_id", "software", "software_version", "topic", "group", "member",
        "transactional_id", "error_message", "raw", "trailing", "follow_with", "unknown_tag_data",
    }
)  # fmt: skip
"""Members whose value is text, even if it looks like a number."""
_LISTS: Final = frozenset({"steps_before", "steps_after", "unknown_tags"})


class _HasRules(Protocol):
    """A mock cluster, or a proxy."""

    def load_faults(self, faults: Sequence[Any], /) -> object: ...
    def unused_faults(self) -> Sequence[ActiveFault]: ...
    def failed_faults(self) -> Sequence[ActiveFault]: ...


class _Client(Protocol):
    def get(self, where: str, **query: Any) -> Any: ...
    def post(self, path: str, body: Any) -> Any: ...
    def delete(self, path: str) -> Any: ...


# ---- serve ---------------------------------------------------------------------------------------


fault_options = option_group(
    "Faults",
    click.option(
        "--faults",
        "fault_files",
        multiple=True,
        metavar="FILE",
        help="Load fault rules from a YAML or JSON file; see `mockbroker help faults`. "
        "Repeatable; the rules of the first file are tried first.",
    ),
    click.option(
        "--faults-must-hit",
        is_flag=True,
        help="Exit with 1 if a rule has no hits, or could not do what it is for. Both are reported "
        "on stderr in any case.",
    ),
)


def faults_into(mock: _HasRules, options: dict[str, Any]) -> None:
    """Raises click.UsageError for a file that does not hold fault rules."""
    files = options["fault_files"]
    if options["faults_must_hit"] and not files and options["control"] is None:
        raise click.UsageError("--faults-must-hit needs --faults or --control")
    try:
        for file in reversed(files):  # rules added last are tried first
            rules = _read(file)
            try:
                mock.load_faults(rules)
            except KprotoError as error:
                raise click.UsageError(f"--faults: {file}: {error}") from None
    except KprotoError as error:
        raise click.UsageError(f"--faults: {error}") from None
    except OSError as error:
        raise click.UsageError(f"--faults: {os_error_text(error)}") from None


def _read(file: str) -> list[Any]:
    from mockbroker.faults import read_faults

    with Path(file).open("rb") as opened:
        data = opened.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise click.UsageError(f"{file}: larger than {_MOST_BYTES} bytes")
    try:
        return list(read_faults(data.decode(), source=file))
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file}: not UTF-8: {error.reason}") from None


def report_unused(mock: _HasRules, *, must_hit: bool) -> None:
    """List on stderr the rules without a hit. Raises ClickException if ``must_hit`` and there is
    one, or one that failed, of which the log has each failure."""
    unused = mock.unused_faults()
    for rule in unused:
        echo(f"mockbroker: no request hit {rule.name}: {rule.fault.describe()}", err=True)
    if unused and must_hit:
        raise click.ClickException(f"no request hit {len(unused)} of the fault rules")
    failed = mock.failed_faults()
    if failed and must_hit:
        names = ", ".join(rule.name for rule in failed)
        raise click.ClickException(f"fault rules that could not do what they are for: {names}")


# ---- ctl -----------------------------------------------------------------------------------------


@click.group("fault")
def fault() -> None:
    """Add, list and remove fault rules."""


@fault.command("add")
@click.argument("members", nargs=-1, metavar="[NAME=VALUE|JSON]...")
@click.option("--file", "file", metavar="FILE", help="Load rules from a YAML or JSON file.")
@json_option
@click.pass_obj
def add(client: _Client, members: tuple[str, ...], file: str | None, as_json: bool) -> None:
    """Add a rule in front of the existing ones.

    Give its members, such as api=45 error=NOT_CONTROLLER times=1, or a JSON object, or a file.
    A duration has a unit, such as delay=500ms; a number in JSON or YAML is milliseconds.
    """
    if bool(members) == (file is not None):
        raise click.UsageError("give either the members of a rule or --file FILE")
    if file is not None:
        try:
            rules = [each.to_dict() for each in _read(file)]
        except KprotoError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            raise click.ClickException(os_error_text(error)) from None
        _show(client.post("/faults", rules), as_json)
        return
    # Importing codecs would slow down --help.
    from mockbroker.faults.rule import DURATION_MEMBERS

    rule = {
        name: value.split(",") if name in _LISTS and isinstance(value, str) else value
        for name, value in parse_members(
            members, strings=_TEXTS.union(DURATION_MEMBERS), example="times=1"
        )
    }
    _show(client.post("/faults", rule), as_json)


@fault.command("list")
@json_option
@click.pass_obj
def list_faults(client: _Client, as_json: bool) -> None:
    """List the rules with their hits, in the order in which they are tried."""
    _show(client.get("/faults"), as_json)


@fault.command("remove")
@click.argument("name")
@json_option
@click.pass_obj
def remove(client: _Client, name: str, as_json: bool) -> None:
    """Remove a rule."""
    _show(client.delete(f"/faults/{quote(name, safe='')}"), as_json)


@fault.command("clear")
@json_option
@click.pass_obj
def clear(client: _Client, as_json: bool) -> None:
    """Remove every rule."""
    _show(client.delete("/faults"), as_json)


@fault.command("wait")
@click.argument("name")
@click.option(
    "--hits", type=click.IntRange(1), default=1, show_default=True, help="The total number of hits."
)
@click.option("--timeout", type=DURATION, default="10s", show_default=True,
              help="Exit with 1 after this time.")  # fmt: skip
@json_option
@click.pass_obj
def wait(client: _Client, name: str, hits: int, timeout: int, as_json: bool) -> None:
    """Wait until a rule has a number of hits."""
    path = f"/faults/{quote(name, safe='')}/wait"
    _show(client.get(path, hits=hits, timeout=timeout), as_json)


def _show(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        echo_json(answer)
        return
    # Importing codecs would slow down --help.
    from mockbroker.faults.rule import DURATION_MEMBERS

    for rule in answer["faults"]:
        state = "" if rule["live"] else " (over)"
        members = " ".join(
            f"{name}={f'{value}ms' if name in DURATION_MEMBERS else json.dumps(value)}"
            for name, value in rule["rule"].items()
            if name != "name"
        )
        echo(f"{rule['name']}: {rule['hits']} hits{state}: {members}")
        for problem in rule["failed"]:
            echo(f"  failed: {problem}")
