"""Which case runs which line of the reference client, with several cases played at a time.

The client is imported once more, with a mark before each statement of its functions.
"""

from __future__ import annotations

import ast
from contextvars import ContextVar
from types import CodeType
from typing import Final, TypeAlias

from kspec.holes.mutant_client import MODULES, changed_client, path_of, source_of
from kspec.reference_client.client import Client

__all__ = ["Lines", "current_case", "marked", "recording_client"]

Lines: TypeAlias = dict[str, set[tuple[str, int]]]
"""The modules and lines at which the statements begin that each case runs."""

current_case: Final[ContextVar[str | None]] = ContextVar("current_case", default=None)
"""The case that is being played. Its tasks inherit it."""

_MARK: Final = "_kspec_ran"
_BLOCKS: Final = ("body", "orelse", "finalbody")


def recording_client(lines: Lines) -> type[Client]:
    """Return the right client, which adds to ``lines`` what ``current_case`` runs."""

    def ran(module: str, line: int) -> None:
        case = current_case.get()
        if case is not None:
            lines.setdefault(case, set()).add((module, line))

    return changed_client({each: _code(each) for each in MODULES}, {_MARK: ran})


def _code(module: str) -> CodeType:
    tree = marked(ast.parse(source_of(module)), module)
    return compile(tree, str(path_of(module)), "exec")


def marked(tree: ast.Module, module: str) -> ast.Module:
    """Put a mark before each statement of a function."""
    done: set[int] = set()
    functions = [
        each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for node in [inner for each in functions for inner in ast.walk(each)]:
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list) and id(block) not in done:
                done.add(id(block))
                block[:] = [part for each in block for part in (_mark(module, each), each)]
    return ast.fix_missing_locations(tree)


def _mark(module: str, statement: ast.stmt) -> ast.stmt:
    arguments: list[ast.expr] = [ast.Constant(module), ast.Constant(statement.lineno)]
    call = ast.Expr(ast.Call(ast.Name(_MARK, ast.Load()), arguments, []))
    return ast.copy_location(call, statement)
