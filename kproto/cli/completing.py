"""Completions for names of the protocol: functions for click's ``shell_complete``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from kproto.dialects import DIALECTS, dialect, load_dialect
from kproto.errors import KprotoError

__all__ = ["api_names", "dialect_names", "message_names", "release_names", "starting_with"]


def starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    """Select names by their start, in any case."""
    return [each for each in names if each.lower().startswith(incomplete.lower())]


def message_names(context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Complete a message of the command's ``--dialect``."""
    name = context.params.get("dialect_name") or "kafka"
    try:
        codec = dialect(name) if name in DIALECTS else load_dialect(Path(name))
        return starting_with(incomplete, codec.message_names())
    except KprotoError:
        return []


def api_names(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Complete an API, such as Metadata."""
    apis = dialect("kafka").apis.values()
    return starting_with(
        incomplete, (each.request.MESSAGE_NAME.removesuffix("Request") for each in apis)
    )


def dialect_names(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Complete a dialect; a folder of schemas is for the user to type."""
    return starting_with(incomplete, DIALECTS)


def release_names(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Complete a release, such as kafka-4.1."""
    from kproto.schema.releases import load_releases

    return starting_with(incomplete, load_releases())
