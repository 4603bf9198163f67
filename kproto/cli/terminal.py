"""Everything that the programs write to standard output and standard error, in text safe to show.

``echo`` and its siblings are how a command prints; ``kproto.cli.console`` is the same for tables
and colour. ``guard_streams`` puts a guard in front of both streams for all other writers: a
library, a log, a traceback. The guard cannot tell the line ends of a peer from ours, so a command
prints lines with ``echo``, which can. ruff refuses ``print`` and ``click.echo`` in the programs.
"""

from __future__ import annotations

import codecs
import json
import sys
from typing import Any, Final, TextIO, cast

import click

from kproto.safe_text import csv_line, json_text, printable, printable_lines

__all__ = [
    "GuardedStream",
    "echo",
    "echo_csv",
    "echo_json",
    "echo_text",
    "guard_streams",
    "unguarded",
    "write_columns",
]


def echo(text: object = "", *, err: bool = False, **style: Any) -> None:
    """Print one line. Unprintable characters are escaped, line ends too. ``style`` is what
    ``click.style`` takes."""
    line = printable(str(text))
    _write(click.style(line, **style) if style else line, err=err)


def write_columns(*columns: str) -> None:
    """Print columns with tabs between them; the last brings the line end, if there is to be one.
    Unprintable characters are escaped, line ends and tabs within a column too."""
    text, end = "".join(columns[-1:]), ""
    if text.endswith("\n"):
        text, end = text[:-1], "\n"
    _write("\t".join(map(printable, (*columns[:-1], text))) + end, nl=False)


def echo_text(text: str, *, nl: bool = True) -> None:
    """Print a text of several lines, whose line ends and tabs are ours. Other unprintable
    characters are escaped."""
    _write(printable_lines(text, tabs=True), nl=nl)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """Print a JSON document (``json_text``)."""
    _write(json_text(value, indent=indent))


def echo_csv(*cells: object) -> None:
    """Print a row of comma-separated values (``csv_line``)."""
    _write(csv_line(cells))


def _write(text: str, *, err: bool = False, nl: bool = True) -> None:
    click.echo(text, file=unguarded(sys.stderr if err else sys.stdout), nl=nl)


class GuardedStream:
    """A text stream that escapes what is written to it, except line ends and tabs. In all else it
    is the stream behind it, ``unguarded``."""

    def __init__(self, unguarded: TextIO) -> None:
        self.unguarded = unguarded

    def write(self, text: str) -> int:
        self.unguarded.write(printable_lines(text, tabs=True))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __iter__(self) -> Any:
        return iter(self.unguarded)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


def guard_streams() -> None:
    """Put a guard in front of ``sys.stdout`` and ``sys.stderr``, for the rest of the process.

    What the encoding of a stream lacks is written as ``\\uXXXX``, which JSON reads, too.
    """
    codecs.register_error(_ESCAPED, _escape)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(stream, GuardedStream):
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPED)
        setattr(sys, name, GuardedStream(stream))


_ESCAPED: Final = "kproto.escaped"


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def unguarded(stream: TextIO) -> TextIO:
    """Return the stream behind a guard, for text that is safe already."""
    return cast("TextIO", getattr(stream, "unguarded", stream))
