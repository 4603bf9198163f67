"""``wiredump extract``: connections out of captures, as a transcript to be replayed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING

import click

from kproto.cli.dialect_option import named_dialect
from kproto.dialects import DIALECTS
from kproto.transcript import Transcript, write_transcript
from wiredump.cli.chosen import source_options
from wiredump.cli.progress import reading
from wiredump.conversation import DEFAULT_PORTS
from wiredump.skipped import require_read, skipped_of

if TYPE_CHECKING:
    from wiredump.model import Item
    from wiredump.sources import Sources

__all__ = ["extract_command"]


@click.command("extract")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--connection", "numbers", type=click.IntRange(0), multiple=True,
              help="The connection of this number, as `wiredump show` has them. "
                   "Repeatable.")  # fmt: skip
@click.option("--client-id", help="Every connection on which this client id was heard.")
@click.option("--out", required=True, metavar="FILE", help="Where to write it; - for stdout.")
@click.option("--secrets", is_flag=True, help="Keep passwords, tokens and keys.")
@click.option("--keep-names", is_flag=True, help="Keep the names and addresses of hosts.")
@click.option("--values", is_flag=True, help="Keep what records say, not only their sizes.")
@click.option("--anonymise", is_flag=True,
              help="Hide the names of topics, groups, transactions and clients, too.")  # fmt: skip
@click.option("--raw", is_flag=True,
              help="Keep the bytes of what cannot be decoded, whatever they may tell.")  # fmt: skip
@click.option("--dialect", "dialect_name", default="auto", show_default=True, metavar="NAME|DIR",
              help=f"One of {', '.join(DIALECTS)}, or a folder of schemas.")  # fmt: skip
@click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True,
              default=sorted(DEFAULT_PORTS), show_default=True,
              help="A hint at which end is the broker. Repeatable.")  # fmt: skip
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
    dialect_name: str,
    ports: tuple[int, ...],
    keylog: str | None,
    zone: tzinfo,
    memory: int | None,
) -> None:
    """Write connections to a file that `mockbroker serve --replay FILE` answers from.

    A CAPTURE is a pcap or pcapng file, perhaps compressed, a journal, a broker's request log, or -
    for standard input. Unless asked otherwise the file holds no secrets, no names of hosts, and
    nothing of what records say; topics, groups and client ids are in it.
    """
    if numbers and client_id is not None:
        raise click.UsageError("Say one of --connection and --client-id.")
    # The codecs are slow to import where only --help is wanted.
    from wiredump.extraction import Hiding, chosen, transcript_of
    from wiredump.sources import open_sources

    codec = named_dialect(dialect_name)
    with reading(captures) as progress:
        source = open_sources(
            captures,
            codec=codec,
            ports=frozenset(ports),
            keylog=keylog,
            zone=zone,
            memory=memory,
            progress=progress,
        )
        choices = chosen(_checked(source), numbers=numbers, client_id=client_id)
    hiding = Hiding(
        secrets_too=not secrets, hosts=not keep_names, records=not values, names=anonymise
    )
    _write(transcript_of(choices, hiding, codec, raw=raw), out)


def _checked(source: Sources) -> Iterator[Item]:
    """Its items. Then packets without TCP are reported, and NothingReadError is raised where a
    capture has no others."""
    yield from source
    account = source.account
    require_read(source.unread, account)
    skipped = skipped_of(account)
    if skipped:
        named = ", ".join(f"{count} {what}" for what, count in skipped.items())
        click.echo(f"wiredump: packets without TCP: {named}", err=True)


def _write(transcript: Transcript, out: str) -> None:
    """A file whole or not at all: what is read later must not be half a connection."""
    is_file = out != "-" and (os.path.isfile(out) or not os.path.exists(out))
    with click.open_file(out, "w", encoding="utf-8", atomic=is_file) as file:
        file.writelines(write_transcript(transcript))
