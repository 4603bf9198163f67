"""No table cuts a name: neither on a terminal of 80 columns, nor in a pipe."""

import sys
from collections.abc import Callable, Iterable

import pytest
from rich.console import Console
from rich.table import Table

from kproto.cli.tables import print_table
from kspec.client_catalog import CLIENTS
from kspec.clientfuzz.mutate import KINDS
from kspec.defects.catalog import DEFECTS
from kspec.runner.files import load_cases
from mockbroker.profiles import all_profiles
from tests.cli.programs import PROGRAMS

TABLES: dict[str, Callable[[], Iterable[str]]] = {
    "kspec list": lambda: [each.id for each in load_cases()],
    "kspec clients": lambda: [each.name for each in CLIENTS],
    "kspec misbehaviours": lambda: DEFECTS,
    "mockbroker fuzz --list-clients": lambda: [each.name for each in CLIENTS],
    "mockbroker fuzz --list-kinds": lambda: KINDS,
    "mockbroker profiles": lambda: [each.name for each in all_profiles()],
}


@pytest.mark.parametrize("terminal", [True, False], ids=["80 columns", "pipe"])
@pytest.mark.parametrize("command", TABLES)
def test_names_are_whole(command, terminal, monkeypatch, capsys):
    program, *arguments = command.split()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    PROGRAMS[program].main(arguments, standalone_mode=False)
    out = capsys.readouterr().out
    assert "…" not in out
    rows = [line.split() for line in out.splitlines()]
    found = {word for row in rows for word in row} | {" ".join(row[:2]) for row in rows}
    names = set(TABLES[command]())
    assert names - found == set()
    if not terminal:
        assert len({row[0] for row in rows if row} & names) == len(names), "a row is one line"


def test_running_text_wraps_on_a_terminal_and_names_do_not() -> None:
    table = Table("id", "about", box=None)
    table.add_row("a/long-id-with-parts", "some words about it " * 8)
    terminal = Console(width=40, force_terminal=True, color_system=None)
    with terminal.capture() as shown:
        print_table(table, ("about",), console=terminal)
    lines = shown.get().splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= 60
    assert sum("a/long-id-with-parts" in line for line in lines) == 1
    pipe = Console(width=40, force_terminal=False)
    with pipe.capture() as shown:
        print_table(table, ("about",), console=pipe)
    assert len(shown.get().splitlines()) == 2
