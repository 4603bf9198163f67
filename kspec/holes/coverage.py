"""Which case runs which line of the reference client, with several cases played at a time.

The client is imported once more, with a mark before each statement of its functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from types import CodeType
from typing import Any, Final, TypeAlias

from kspec.holes.mutant_client import MODULES, changed_client, path_of, source_of
from kspec.holes.mutations import Mutation, compare_values
from kspec.reference_client.client import Client

__all__ = ["Lines", "comparing_client", "current_case", "marked", "recording_client"]

Lines: TypeAlias = dict[str, set[tuple[str, int]]]
"""The modules and lines at which the statements begin that each case runs."""

current_case: Final[ContextVar[str | None]] = ContextVar("current_case", default=None)
"""The case that is being played. Its tasks inherit it."""

_COMPARE: Final = "_kspec_compare"
_MARK: Final = "_kspec_ran"
_BLOCKS: Final = ("body", "orelse", "finalbody")


def recording_client(lines: Lines) -> type[Client]:
    """Return the right client, which adds to ``lines`` what ``current_case`` runs."""

    def ran(module: str, line: int) -> None:
        case = current_case.get()
        if case is not None:
            lines.setdefault(case, set()).add((module, line))

    return changed_client({each: _code(each) for each in MODULES}, {_MARK: ran})


def comparing_client(wanted: Sequence[Mutation], found: dict[str, set[str]]) -> type[Client]:
    """Return the right client, which adds to ``found``, by a defect's id, the cases in which its
    expression has another value than the right one, or none."""
    codes, names = {}, {}
    for module in dict.fromkeys(each.module for each in wanted):
        share = [each for each in wanted if each.module == module]
        function = f"{_COMPARE}_{module}"
        tree = compare_values(source_of(module), share, function)
        codes[module] = compile(tree, str(path_of(module)), "exec")
        names[function] = partial(_compared, [each.id for each in share], found)
    return changed_client(codes, names)


def _compared(
    ids: Sequence[str], found: dict[str, set[str]], indexes: Sequence[int],
    right: Callable[[], Any], others: Sequence[Callable[[], Any]],
) -> Any:  # fmt: skip
    value, case = right(), current_case.get()
    for index, other in zip(indexes, others, strict=True):
        if case is not None and case not in found.get(ids[index], ()):
            try:
                differs = bool(other() != value)
            except Exception:  # whatever the expression raises, another behaviour
                differs = True
            if differs:
                found.setdefault(ids[index], set()).add(case)
    return value


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
