"""Options that name an output. A test finds them in the commands by these types."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from kproto.outputs import OutputError, check_output, check_output_folder

__all__ = ["OutputFile", "OutputFolder", "OutputStreamType"]


class _Output(click.Path):
    """A path that is checked before the command begins."""

    _check: Callable[[str], None]
    _name: str

    def __init__(self, *, path_type: type[Any] | None = None) -> None:
        super().__init__(path_type=path_type)
        self.name = self._name

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        if ctx is None or not ctx.resilient_parsing:
            try:
                type(self)._check(os.fspath(value))
            except OutputError as error:
                self.fail(str(error), param, ctx)
        return self.coerce_path_result(value)


class OutputFile(_Output):
    """A file that ``kproto.outputs.open_output`` writes."""

    _name = "file"
    _check = staticmethod(check_output)


class OutputFolder(_Output):
    """A folder that ``kproto.outputs.open_folder_output`` writes."""

    _name = "directory"
    _check = staticmethod(check_output_folder)


class OutputStreamType(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic in newer click
    """A file that ``kproto.outputs.OutputStream`` writes while the command runs."""
