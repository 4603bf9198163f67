"""``wiredump extract``: write connections of captures to a transcript that can be replayed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kproto.cli.dialect_option import named_dialect
from kproto.cli.outputs import OutputFile
from kproto.cli.terminal import echo
from kproto.outputs import open_output
from kproto.transcript import Transcript, write_transcript
from wiredump.cli.damage import check_read
from wiredump.cli.progress import reading
from wiredump.cli.source_options import (
    SourceOptions,
    dialect_option,
    expanded,
    port_option,
    source_options,
)
from wiredump.skipped import skipped_of

if TYPE_CHECKING:
    from wiredump.model import Item
    from wiredump.sources import Sources

__all__ = ["extract_command"]


@click.command("extract")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--connection", "numbers", type=click.IntRange(0), multiple=True,
              help="Extract the connection with this number, as `wiredump show` numbers them. "
                   "Repeatable.")  # fmt: skip
@click.option("--client-id", help="Extract every connection that uses this client id.")
@click.option("--out", type=OutputFile(), required=True, metavar="FILE",
              help="File to write, or - for standard output.")  # fmt: skip
@click.option("--secrets", is_flag=True, help="Keep passwords, tokens and keys.")
@click.option("--keep-names", is_flag=True, help="Keep the names and addresses of hosts.")
@click.option("--values", is_flag=True, help="Keep keys and values of records.")
@click.option("--anonymise", is_flag=True,
              help="Also hide the names of topics, groups, transactions and clients.")  # fmt: skip
@click.option("--raw", is_flag=True,
              help="Keep frames that cannot be decoded, which may reveal anything.")  # fmt: skip
@dialect_option()
@port_option()
@source_options
def extract_command(
    captures: tuple[str, ...],
    numbers: tuple[int, ...],
    client_id: str | None,
    out: str,
    secrets: bool,
    keep_names: bool,
    values: bool,
    anonymise: bool,
    raw: bool,
    options: SourceOptions,
) -> None:
    """Write connections to a transcript, from which `mockbroker serve --replay FILE` answers.

    A CAPTURE is a pcap or pcapng file, optionally compressed, a journal, a broker's request log,
    or - for standard input. By default the transcript has no secrets, no names of hosts and no
    contents of records, but it does have topics, groups and client ids.
    """
    captures = expanded(captures)
    if numbers and client_id is not None:
        raise click.UsageError("--connection and --client-id cannot be combined.")
    # Imported late: --help does not need the codecs, which are slow to import.
    from wiredump.extraction import Hiding, chosen, transcript_of
    from wiredump.sources import open_sources

    codec = named_dialect(options.dialect_name)
    with reading(captures) as progress:
        source = open_sources(captures, codec=codec, progress=progress, **options.reading)
        choices = chosen(_checked(source), numbers=numbers, client_id=client_id)
    hiding = Hiding(
        secrets_too=not secrets, hosts=not keep_names, records=not values, names=anonymise
    )
    _write(transcript_of(choices, hiding, codec, raw=raw), out)


def _checked(source: Sources) -> Iterator[Item]:
    """Yield the items, then report packets without TCP and what was not read.

    Raises NothingReadError at the end if a capture has no TCP at all, and NothingJudgedError if no
    request was read.
    """
    yield from source
    account = source.account
    skipped = skipped_of(account)
    if skipped:
        named = ", ".join(f"{count} {what}" for what, count in skipped.items())
        echo(f"wiredump: packets without TCP: {named}", err=True)
    check_read(source.unread, account, "extracted")


def _write(transcript: Transcript, out: str) -> None:
    with open_output(out) as file:
        file.writelines(line.encode() for line in write_transcript(transcript))
