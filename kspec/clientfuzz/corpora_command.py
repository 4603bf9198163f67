"""``mockbroker fuzz seeds``: corpora for other fuzzers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kproto.cli.completing import api_names
from kproto.cli.dialect_option import dialect_option, named_dialect
from kproto.cli.outputs import OutputFolder
from kproto.cli.terminal import echo
from kproto.errors import KprotoError
from kspec.clientfuzz.bases import Direction
from kspec.clientfuzz.corpora import FORMATS, seeds, write_seeds
from kspec.clientfuzz.options import api_key

__all__ = ["seeds_command"]


@click.command("seeds")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    required=True,
    help="Layout of the corpus.",
)
@click.option(
    "--out",
    type=OutputFolder(path_type=Path),
    required=True,
    help="Output folder; for go, a module's testdata/fuzz.",
)
@click.option(
    "--api",
    "apis",
    multiple=True,
    shell_complete=api_names,
    help="API key or name. Repeat it for several; the default is all.",
)
@dialect_option
@click.option("--version", type=int, help="API version; the default is all.")
@click.option("--request", is_flag=True, help="Write requests instead of responses.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the mutations.")
@click.option("--mutated", type=click.IntRange(min=0), default=20, show_default=True,
              help="Number of mutated frames per API, beside the valid ones.")  # fmt: skip
def seeds_command(
    format_name: str,
    out: Path,
    apis: Sequence[str],
    dialect_name: str,
    version: int | None,
    request: bool,
    seed: int,
    mutated: int,
) -> None:
    """Write valid and mutated frames as a corpus for libFuzzer, Go's fuzzing or Jazzer."""
    direction: Direction = "request" if request else "response"
    try:
        dialect = named_dialect(dialect_name)
        made = seeds(
            dialect, [api_key(each, dialect) for each in apis], direction,
            seed=seed, mutated=mutated, version=version,
        )  # fmt: skip
        count = write_seeds(format_name, out, made)
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    echo(f"{count} files in {out}")
