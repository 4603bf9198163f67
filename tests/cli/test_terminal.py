"""What the programs print with, and the guard in front of everything else."""

import io
import logging
import subprocess
import sys

import pytest
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from demo.screen import Terminal
from kproto.cli.console import Console
from kproto.cli.terminal import echo, echo_csv, echo_json, echo_text, guard_streams, write_columns
from kproto.journal import Entry
from tests.cli.hostile import WIRE, check


def test_each_way_of_printing(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\nb\x1b[2J")
    echo("err\r", err=True)
    echo_text("a\n\tb\x9b")
    echo_json({"a": "\x9b\ud800"})
    echo_csv("=1", 2, None)
    write_columns("", "a\tb", "c\nd\n")
    write_columns("no line end")
    out, err = capsys.readouterr()
    assert out == (
        'a\\nb\\x1b[2J\na\n\tb\\x9b\n{"a": "\\u009b\\ud800"}\n\'=1,2,\n\ta\\tb\tc\\nd\nno line end'
    )
    assert err == "err\\r\n"


def test_styles_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Screen()
    monkeypatch.setattr(sys, "stdout", shown)
    guard_streams()
    echo("a\x1b[32m", fg="red")
    print("\x1b[32mb")
    assert shown.getvalue() == "\x1b[31ma\\x1b[32m\x1b[0m\n\\x1b[32mb\n"


GUARDED = """
import logging, sys, warnings
from kproto.cli.terminal import guard_streams
guard_streams()
guard_streams()
text = "\\x1b[2J\\x9b\\u202e\\udcff \\u20ac"
print(text)
sys.stderr.writelines([text, "\\n"])
logging.warning(text)
warnings.warn(text)
raise ValueError(text)
"""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1:surrogateescape"])
def test_the_guard_covers_logs_warnings_and_tracebacks(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GUARDED],
        capture_output=True,
        env={"PYTHONIOENCODING": encoding, "PYTHONPATH": ":".join(sys.path)},
        check=False,
    )
    assert done.returncode == 1
    euro = b"\\u20ac" if encoding != "utf-8" else "€".encode()
    line = rb"\x1b[2J\x9b\u202e\udcff " + euro
    assert done.stdout == line + b"\n"
    assert done.stderr.count(line) == 4, done.stderr
    check(done.stderr)


def test_a_console_shows_markup_and_control_characters_as_they_are() -> None:
    shown = io.BytesIO()
    stream = io.TextIOWrapper(shown, encoding="utf-8", newline="\n")
    console = Console(file=stream, force_terminal=True, width=2000)
    table = Table(WIRE, title=WIRE, caption=WIRE)
    table.add_row(WIRE)
    table.add_row(Text(WIRE, style="red"))
    table.add_row(Text.assemble("x", (WIRE, "bold"), style="red"))
    console.print(table)
    console.print(WIRE, style="red")
    console.print(Text(WIRE), WIRE)
    console.rule(WIRE)
    stream.flush()
    assert check(shown.getvalue(), styled=True).count("[red]R3D[/red]") == 10


def test_the_console_keeps_the_styles_of_escaped_text() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    with console.capture() as captured:
        console.print(Text.assemble("a\x1b", ("b\x1b", "red"), "c"))
    assert captured.get() == "a\\x1b\x1b[31mb\\x1b\x1b[0mc\n"


def test_status_lines_and_spinners_show_texts() -> None:
    shown = io.BytesIO()
    stream = io.TextIOWrapper(shown, encoding="utf-8", newline="\n")
    console = Console(file=stream, force_terminal=True, width=2000)
    status = console.status(WIRE)
    status.update(WIRE)
    console.print(status.renderable)
    console.print(Spinner("dots", Text(WIRE)))
    assert isinstance(status._live, Live)
    stream.flush()
    assert check(shown.getvalue(), styled=True).count("[red]R3D[/red]") == 2


def test_a_log_message_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    from mockbroker.cli.running import log_to_stderr

    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers.clear()
    try:
        log_to_stderr()
        logging.getLogger("mockbroker").warning("client %s", WIRE)
    finally:
        root.handlers[:] = before
    _, err = capsys.readouterr()
    assert err.startswith("mockbroker: client [red]R3D")
    assert err.count("\n") == 1
    check(err.encode())


def test_the_demo_prints_what_clients_send_as_text() -> None:
    shown = io.BytesIO()
    stream = io.TextIOWrapper(shown, encoding="utf-8", newline="\n")
    demo = Terminal(Console(file=stream, force_terminal=True, width=2000))
    for write in (demo.note, demo.step, demo.call, demo.move):
        write(WIRE)
    demo.wire([Entry(1, 1, 1, 1, "event", WIRE, event=WIRE, note=WIRE)])
    stream.flush()
    assert check(shown.getvalue(), styled=True).count("[red]R3D[/red]") == 6
