"""``kproto codegen``: regenerate the committed class modules, or print a codec's source."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.progress import track
from rich.syntax import Syntax

import kproto
from kproto.cli.completing import message_names
from kproto.cli.console import Console
from kproto.cli.dialect_option import dialect_option, named_dialect
from kproto.cli.terminal import echo, echo_text
from kproto.codec import registry
from kproto.codec.message import Message
from kproto.codegen import modules
from kproto.errors import UnknownNameError
from kproto.schema.load import load_directory, schemas_directory

__all__ = ["codegen_command"]


@click.command("codegen")
@click.option("--check", is_flag=True, help="Only check; fail if a module is stale.")
@click.option("--all", "make_all", is_flag=True, help="Generate every codec, as a check.")
@click.option(
    "--show",
    type=(str, int),
    metavar="NAME VERSION",
    shell_complete=message_names,
    help="Print the source of the codec of a message at a version.",
)
@dialect_option
def codegen_command(
    check: bool, make_all: bool, show: tuple[str, int] | None, dialect_name: str
) -> None:
    """Write the class modules of kproto/messages from schemas/kafka.

    Codecs are generated at run time, on first use. --show prints the source of one, --all generates
    all of them as a check.
    """
    if (show is not None) + make_all + check > 1:
        raise click.UsageError("Specify only one of --check, --all and --show NAME VERSION.")
    if show is not None:
        _show(*show, dialect_name)
    elif make_all:
        _make_all()
    else:
        _modules(check)


def _modules(check: bool) -> None:
    directory = Path(kproto.__file__).parent / "messages"
    files = modules.generated_files(load_directory(schemas_directory() / "kafka").values())
    if check:
        wrong = modules.stale(directory, files)
        if wrong:
            raise kproto.KprotoError(
                f"{len(wrong)} generated files are stale, {wrong[0]} first; run kproto codegen"
            )
        echo(f"{len(files)} generated files are up to date")
        return
    echo(f"{len(modules.write(directory, files))} of {len(files)} files changed")


def _show(name: str, version: int, dialect_name: str) -> None:
    cls = named_dialect(dialect_name).message(name)
    if not issubclass(cls, Message):
        raise UnknownNameError(f"{name} is a struct; its codec is part of its message's")
    source = registry.source_of(cls, version)
    if sys.stdout.isatty():
        Console(multiline=True).print(Syntax(source, "python"))
    else:
        echo_text(source)


def _make_all() -> None:
    kafka = kproto.dialect("kafka")
    names = kafka.message_names()
    made, slowest = 0, (0.0, "")
    for name in track(names, "Making codecs", console=Console(stderr=True), transient=True):
        cls = kafka.message(name)
        for version in cls.VALID_VERSIONS:
            start = time.perf_counter()
            registry.encoder(cls, version)
            registry.decoder(cls, version)
            slowest = max(slowest, (time.perf_counter() - start, f"{name} v{version}"))
            made += 2
    echo(
        f"{made} codecs of {len(names)} messages; slowest {slowest[1]}, {slowest[0] * 1000:.1f} ms"
    )
