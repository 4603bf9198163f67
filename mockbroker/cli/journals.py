"""``--journal FILE``: the traffic as JSON lines or as a capture, by the file's extension."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kproto.cli.outputs import OutputStreamType
from kproto.cli.terminal import echo
from kproto.os_errors import os_error_text
from kproto.outputs import NotEmptyError, OutputError, OutputStream
from mockbroker.cli.option_types import ParsedOption
from mockbroker.errors import ClusterError

if TYPE_CHECKING:
    from kproto.journal import Entry

__all__ = ["JOURNAL_FILE", "JOURNAL_OPTIONS", "journal_file", "journal_sink"]


def journal_file(text: str) -> Path:
    """The option's value. Raises ClusterError for an unknown extension."""
    if not text.endswith((".jsonl", ".pcapng")):
        raise ClusterError(f"{text!r}: the extension must be .jsonl or .pcapng")
    return Path(text)


class _JournalFile(ParsedOption, OutputStreamType):
    """A file that is opened once all options are known."""


JOURNAL_FILE: Final = _JournalFile("FILE.jsonl|FILE.pcapng", journal_file)

JOURNAL_OPTIONS: Final = (
    click.option(
        "--journal",
        type=JOURNAL_FILE,
        help="Record the traffic in this file, as JSON lines or as a capture for Wireshark.",
    ),
    click.option(
        "--overwrite-journal",
        is_flag=True,
        help="Replace the file of --journal if it is not empty, instead of refusing it.",
    ),
)
"""The options of a journal, for an option group."""


@contextlib.contextmanager
def journal_sink(path: Path, *, overwrite: bool = False) -> Iterator[Callable[[Entry], None]]:
    """A function that writes each entry at once, so that an answer is in the file before the client
    has it. A full disk ends the file after the last complete entry, but not the broker.

    Raises OutputError for a file that is not empty, unless it may be overwritten, and in the end
    click's Exit with 1 if an entry could not be written.
    """
    try:
        file = OutputStream(path, overwrite=overwrite)
    except NotEmptyError as error:
        raise OutputError(f"--journal: {error}, or add --overwrite-journal") from None
    except OutputError as error:
        raise OutputError(f"--journal: {error}") from None
    failed = False

    def sink(entry: Entry) -> None:
        nonlocal failed
        if failed:
            return
        try:
            write(entry)
        except OSError as error:
            failed = True
            echo(f"mockbroker: --journal: {os_error_text(error)}; the file ends here", err=True)

    with contextlib.closing(file):
        write = _writer(path, file)
        yield sink
    if failed:
        raise click.exceptions.Exit(1)


def _writer(path: Path, file: OutputStream) -> Callable[[Entry], object]:
    if path.suffix == ".pcapng":
        from kproto.capture import JournalCapture

        capture = JournalCapture()
        file.write(capture.start())
        return lambda entry: file.write(capture.add(entry))
    from kproto.journal import JournalWriter

    return JournalWriter(_Text(file)).write


class _Text:
    """The stream as a text file."""

    def __init__(self, file: OutputStream) -> None:
        self._file = file

    def write(self, text: str, /) -> None:
        self._file.write(text.encode())
