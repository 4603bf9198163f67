"""``--journal FILE``: the traffic as JSON lines or as a capture, by the file's extension."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kproto.cli.terminal import echo
from kproto.os_errors import os_error_text
from mockbroker.cli.option_types import ParsedOption
from mockbroker.errors import ClusterError

if TYPE_CHECKING:
    from kproto.journal import Entry

__all__ = ["JOURNAL_OPTION", "journal_file", "journal_sink"]


def journal_file(text: str) -> Path:
    """The option's value. Raises ClusterError for an unknown extension."""
    if not text.endswith((".jsonl", ".pcapng")):
        raise ClusterError(f"{text!r}: the extension must be .jsonl or .pcapng")
    return Path(text)


JOURNAL_OPTION: Final = click.option(
    "--journal",
    type=ParsedOption("FILE.jsonl|FILE.pcapng", journal_file),
    help="Record the traffic in this file, as JSON lines or as a capture for Wireshark.",
)


@contextlib.contextmanager
def journal_sink(path: Path) -> Iterator[Callable[[Entry], None]]:
    """A function that writes each entry at once, so that an answer is in the file before the client
    has it. A full disk ends the file, but not the broker."""
    with _writer(path) as write:
        failed = False

        def sink(entry: Entry) -> None:
            nonlocal failed
            if failed:
                return
            try:
                write(entry)
            except OSError as error:
                failed = True
                echo(
                    f"mockbroker: --journal {path}: {os_error_text(error)}; the file ends here",
                    err=True,
                )

        yield sink


@contextlib.contextmanager
def _writer(path: Path) -> Iterator[Callable[[Entry], object]]:
    if path.suffix == ".pcapng":
        from kproto.capture import JournalCapture

        capture = JournalCapture()
        with path.open("wb", buffering=0) as packets:
            packets.write(capture.start())
            yield lambda entry: packets.write(capture.add(entry))
        return
    from kproto.journal import JournalWriter

    with path.open("w", encoding="utf-8", buffering=1) as lines:
        yield JournalWriter(lines).write
