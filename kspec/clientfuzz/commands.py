"""The ways of fuzzing that need no client of yours: many decoders at once, a broker, and corpora
for other harnesses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

import kproto
from kproto.errors import KprotoError
from kspec.clientfuzz.bases import Direction
from kspec.clientfuzz.brokers.cli import broker
from kspec.clientfuzz.corpora import FORMATS, seeds, write_seeds
from kspec.clientfuzz.decoders.cli import api_key, diff

__all__ = ["Ways", "add_ways"]


class Ways(click.Group):
    """The commands beside the one that fuzzes a client. ``--diff`` and ``--broker ADDRESS`` stand
    for the commands of those names."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if "--diff" in args:
            args = ["diff", *(each for each in args if each != "--diff")]
        elif given := [each for each in args if each.startswith("--broker=")]:
            rest = [each for each in args if each not in given]
            args = ["broker", given[0].partition("=")[2], *rest]
        elif "--broker" in args[:-1]:
            at = args.index("--broker")
            args = ["broker", args[at + 1], *args[:at], *args[at + 2 :]]
        return super().parse_args(context, args)


def add_ways(fuzz: click.Group) -> None:
    for command in (diff, broker, seeds_command):
        fuzz.add_command(command)


@click.command("seeds")
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)), required=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True,
              help="A folder; for go that is a module's testdata/fuzz.")  # fmt: skip
@click.option("--api", "apis", multiple=True, help="An api key or name, several of them; or all.")
@click.option("--version", type=int, help="This api version alone.")
@click.option("--request", is_flag=True, help="Requests; responses otherwise.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--mutated", type=click.IntRange(min=0), default=20, show_default=True,
              help="Damaged frames of each api, beside the good ones.")  # fmt: skip
def seeds_command(
    format_name: str,
    out: Path,
    apis: Sequence[str],
    version: int | None,
    request: bool,
    seed: int,
    mutated: int,
) -> None:
    """Write good and damaged frames as a corpus for libFuzzer, Go's fuzzing or Jazzer."""
    keys = [api_key(each) for each in apis]
    direction: Direction = "request" if request else "response"
    try:
        made = seeds(
            kproto.dialect("kafka"), keys, direction,
            seed=seed, mutated=mutated, version=version,
        )  # fmt: skip
        count = write_seeds(format_name, out, made)
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    click.echo(f"{count} files in {out}")
