"""``kspec vectors``: write the file of test vectors."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import click
from rich.table import Table

import kproto
from kproto.cli.console import Console
from kproto.cli.dialect_option import dialect_option, named_dialect
from kproto.cli.outputs import OutputFile
from kproto.outputs import open_output
from kspec.vectors import Vector, file_lines, vectors

__all__ = ["vectors_command"]


@click.command("vectors")
@click.option(
    "--out",
    type=OutputFile(),
    required=True,
    metavar="FILE",
    help="Output file of JSON lines, compressed if the name ends in .gz; - is standard output.",
)
@click.option(
    "--message",
    "names",
    multiple=True,
    metavar="NAME",
    help="Write only this message, such as MetadataResponse. Repeat it for several.",
)
@dialect_option
def vectors_command(out: str, names: tuple[str, ...], dialect_name: str) -> None:
    """Write test vectors for decoders in any language.

    For every message and version: valid bytes with the value of each field, and bytes that a
    decoder must reject. See `kspec help vectors`.
    """
    dialect = _dialect(dialect_name)
    counts: Counter[tuple[str, str]] = Counter()

    def counted() -> Iterator[Vector]:
        for vector in vectors(dialect, names or None):
            counts[vector.verdict, vector.kind] += 1
            yield vector

    with _opened(out) as file:
        for line in file_lines(dialect, counted()):
            file.write(f"{line}\n".encode("ascii"))
    _print_counts(counts)


def _dialect(name: str) -> kproto.Dialect:
    found = named_dialect(name)
    if not isinstance(found, kproto.Dialect):
        raise click.UsageError("vectors need a single dialect; auto is not one")
    return found


@contextmanager
def _opened(out: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    with open_output(out) as file:
        if not out.endswith(".gz"):
            yield file
            return
        # The archive contains no name and no time, so the same vectors make the same file.
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            yield packed


def _print_counts(counts: Counter[tuple[str, str]]) -> None:
    table = Table("verdict", "kind", "vectors", box=None)
    table.columns[2].justify = "right"
    order = ("valid", "acceptable", "invalid")
    for verdict, kind in sorted(counts, key=lambda each: (order.index(each[0]), each[1])):
        table.add_row(verdict, kind, f"{counts[verdict, kind]:,}")
    table.add_row("", "all", f"{counts.total():,}")
    Console(stderr=True).print(table)
