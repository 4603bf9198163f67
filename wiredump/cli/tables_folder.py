"""Options that name a folder of tables to write, by path or by URI."""

from __future__ import annotations

import os
from typing import Any

import click

from kproto.cli.outputs import OutputFolder
from wiredump.storage import absolute, is_uri

__all__ = ["TablesFolder"]


class TablesFolder(OutputFolder):
    """A local folder is checked before the command begins; a remote one when it is written."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        where = os.fspath(value)
        if is_uri(where):
            return where
        super().convert(absolute(where), param, ctx)
        return where
