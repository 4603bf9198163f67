"""Options that name an output. A test finds them in the commands by these types."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from kproto.outputs import OutputError, check_output, check_output_folder

__all__ = ["OutputFile", "OutputFolder", "OutputStreamType", "spare_inputs"]


class _Output(click.Path):
    """A path that is checked before the command begins."""

    _check: Callable[[str], None]
    _name: str

    def __init__(
        self, *, path_type: type[Any] | None = None, may_replace_input: bool = False
    ) -> None:
        super().__init__(path_type=path_type)
        self.name = self._name
        self.may_replace_input = may_replace_input

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


def spare_inputs(command: click.Command) -> None:
    """Let the command, or each of a group, refuse an output file that is one of its inputs: by the
    end, or before, it would be replaced."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            spare_inputs(each)
    outputs = [each for each in command.params if _replaces(each.type)]
    callback = command.callback
    if not outputs or callback is None:
        return

    @functools.wraps(callback)
    def checked(*arguments: Any, **values: Any) -> Any:
        context = click.get_current_context()
        written = {each.name for each in outputs}
        others = [value for name, value in context.params.items() if name not in written]
        for each in outputs:
            _check_spared(context, each, others)
        return callback(*arguments, **values)

    command.callback = checked


def _replaces(kind: object) -> bool:
    if isinstance(kind, OutputFile):
        return not kind.may_replace_input
    return isinstance(kind, OutputStreamType)


def _check_spared(context: click.Context, output: click.Parameter, others: list[Any]) -> None:
    path = context.params.get(output.name or "")
    if not isinstance(path, str | os.PathLike) or not _is_file(path):
        return
    for each in _paths(others):
        if _is_file(each) and os.path.samefile(path, each):
            problem = f"{os.fspath(path)} is an input of this command, which would replace it"
            raise click.BadParameter(problem, context, output)


def _paths(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str | os.PathLike):
            yield os.fspath(value)
        elif isinstance(value, tuple | list):
            yield from _paths(value)


def _is_file(path: str | os.PathLike[str]) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):  # a pattern, a URI, a text
        return False
