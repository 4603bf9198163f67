"""Make defects of a module from its syntax tree, one place at a time. No I/O.

A ``Mutation`` names a place and a change. Each change is one that a client's author could make: a
comparison that is off by one, an error that counts for another, state that is not kept, a field
that is left out. Texts, annotations and what only describes the client are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

__all__ = [
    "Mutation",
    "compare_values",
    "compared_places",
    "lines_by_name",
    "mutate",
    "mutations",
]

_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_SIGNS: Final[Mapping[type, str]] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/",
}  # fmt: skip
_ARITHMETIC: Final[Mapping[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
}
_COUNTERPARTS: Final = {"any": "all", "all": "any", "min": "max", "max": "min", "sorted": "list"}
_LEFT_OUT: Final = "field left out"
_PURE: Final = (
    "any", "all", "min", "max", "sorted", "len", "int", "bool", "str", "list", "set", "tuple",
    "getattr", "isinstance", "range", "get", "keys", "values", "items", "time", "monotonic",
    "get_running_loop", "startswith", "frozenset",
)  # fmt: skip
"""Functions and methods that an expression may call twice."""
_KEYS: Final = ("tp",)
"""Variables that hold a topic and a partition."""
_LOOKUPS: Final = ("get", "pop", "setdefault")
_MEASURE: Final = 500
"""A number so large is a size or a time, not a code or a version: one more makes no difference."""
_ROWS: Final = ("answer", "row", "each", "found", "joined", "synced", "hint", "body")
"""Variables that hold a row or an answer."""
_DESCRIPTIVE: Final = ("greeting", "reason_for", "described_errors", "__all__")
"""Functions and constants that describe the client, or words in requests for people to read."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one place. ``lines`` are those whose execution can show it: the statement's,
    and for a constant, a default or a class attribute those that use it."""

    module: str
    line: int
    number: int
    kind: str
    change: str
    lines: frozenset[int] = field(compare=False)
    names: frozenset[str] = field(default=frozenset(), compare=False)
    """Attributes of classes that the change is about, whose uses in other modules count, too."""
    place: str = field(default="", compare=False)
    """The function, as ``Class.method``, or the constant."""

    @property
    def id(self) -> str:
        return f"{self.module}:{self.line}:{self.number}"

    def __str__(self) -> str:
        return f"{self.id} {self.place}: {self.kind}: {self.change}"


@dataclass(slots=True)
class _Site:
    """A place in the tree: how to change it, given a tree of the same shape."""

    node: ast.AST
    kind: str
    change: str
    apply: Callable[[], None]


def mutations(source: str, module: str) -> list[Mutation]:
    """Return the defects of a module in the order of its source."""
    tree = ast.parse(source)
    scopes = _Scopes(tree)
    found: list[Mutation] = []
    numbers: dict[int, int] = {}
    for site in _sites(tree):
        line = int(getattr(site.node, "lineno", 0))
        number = numbers[line] = numbers.get(line, -1) + 1
        lines, names = scopes.shown_by(site.node)
        place = scopes.place_of(site.node)
        found.append(Mutation(module, line, number, site.kind, site.change, lines, names, place))
    return found


def mutate(source: str, wanted: Mutation) -> ast.Module:
    """Return the tree of the module with that defect. Raises KeyError if it is none of it."""
    tree = ast.parse(source)
    numbers: dict[int, int] = {}
    for site in _sites(tree):
        line = int(getattr(site.node, "lineno", 0))
        number = numbers[line] = numbers.get(line, -1) + 1
        if (line, number) == (wanted.line, wanted.number):
            site.apply()
            return ast.fix_missing_locations(tree)
    raise KeyError(wanted.id)


def compare_values(source: str, wanted: Sequence[Mutation], function: str) -> ast.Module:
    """Return the tree of the right module, in which ``function`` gets the values of expressions
    that defects change: a number for each defect, the right value as a function without
    arguments, and the values with the defects. It returns the right one.

    An expression is the largest one around the change that may be computed twice. Defects without
    one are left out.
    """
    tree = ast.parse(source)
    scopes = _Scopes(tree)
    sites = dict(_numbered(tree))
    links = _links(tree)
    found: dict[int, tuple[ast.expr, list[tuple[int, ast.expr]]]] = {}
    for index, mutation in enumerate(wanted):
        site = sites.get((mutation.line, mutation.number))
        whole = None if site is None else scopes.comparable(site)
        if whole is not None:
            other = _at(mutate(source, mutation), _path(links, whole))
            found.setdefault(id(whole), (whole, []))[1].append((index, other))
    for whole, several in found.values():
        parent, name, place = links[whole]
        is_test = name == "test"
        indexes = ast.Tuple([ast.Constant(index) for index, _ in several], ast.Load())
        others = ast.Tuple([_lambda(each, is_test) for _, each in several], ast.Load())
        arguments: list[ast.expr] = [indexes, _lambda(whole, is_test), others]
        call = ast.copy_location(ast.Call(ast.Name(function, ast.Load()), arguments, []), whole)
        if place is None:
            setattr(parent, name, call)
        else:
            getattr(parent, name)[place] = call
    return ast.fix_missing_locations(tree)


@lru_cache(maxsize=64)
def compared_places(source: str) -> frozenset[tuple[int, int]]:
    """Return the lines and numbers of the defects that ``compare_values`` compares."""
    tree = ast.parse(source)
    scopes = _Scopes(tree)
    return frozenset(
        place for place, site in _numbered(tree) if scopes.comparable(site) is not None
    )


def _numbered(tree: ast.Module) -> Iterator[tuple[tuple[int, int], _Site]]:
    """Yield the places with their lines and their numbers in a line."""
    counts: dict[int, int] = {}
    for site in _sites(tree):
        line = int(getattr(site.node, "lineno", 0))
        counts[line] = counts.get(line, -1) + 1
        yield (line, counts[line]), site


def _links(tree: ast.AST) -> dict[ast.AST, tuple[ast.AST, str, int | None]]:
    """Return the parent of each node, with the field and the place in a list where it has it."""
    found: dict[ast.AST, tuple[ast.AST, str, int | None]] = {}
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST):
                found[value] = parent, name, None
            elif isinstance(value, list):
                for place, item in enumerate(value):
                    if isinstance(item, ast.AST):
                        found[item] = parent, name, place
    return found


def _path(
    links: Mapping[ast.AST, tuple[ast.AST, str, int | None]], node: ast.AST
) -> list[tuple[str, int | None]]:
    found: list[tuple[str, int | None]] = []
    while node in links:
        node, name, place = links[node]
        found.insert(0, (name, place))
    return found


def _at(tree: ast.AST, path: Sequence[tuple[str, int | None]]) -> Any:
    node: Any = tree
    for name, place in path:
        node = getattr(node, name) if place is None else getattr(node, name)[place]
    return node


def _lambda(body: ast.expr, is_test: bool) -> ast.expr:
    """Return a function that computes an expression; of a test only the truth counts."""
    if is_test:
        name = ast.copy_location(ast.Name("bool", ast.Load()), body)
        body = ast.copy_location(ast.Call(name, [body], []), body)
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(empty, body), body)


def lines_by_name(source: str) -> Mapping[str, frozenset[int]]:
    """Return the lines in functions that use each name or attribute."""
    return _Scopes(ast.parse(source)).lines_by_name


# ---- the places ----------------------------------------------------------------------------------


def _sites(tree: ast.Module) -> Iterator[_Site]:
    """Yield every place in the order of the source, without changing the tree."""
    for parent in _walk(tree):
        yield from _statements(parent)
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.expr):
                yield from _expressions(value, _setter(parent, name))
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        yield from _expressions(item, _item_setter(value, index))
        if isinstance(parent, ast.Call):
            yield from _calls(parent)
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _fields(parent)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and those below it that decide something: no annotations, no texts for people,
    nothing that describes the client."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "bases"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, ast.AST) or isinstance(item, ast.JoinedStr | ast.Raise):
                continue
            if isinstance(item, ast.Import | ast.ImportFrom | ast.Assert):
                continue
            if _name_of(item) in _DESCRIPTIVE:
                continue
            yield from _walk(item)


def _name_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else None


def _setter(parent: Any, name: str) -> Callable[[Any], None]:
    return lambda value: setattr(parent, name, value)


def _item_setter(items: list[Any], index: int) -> Callable[[Any], None]:
    return lambda value: items.__setitem__(index, value)


def _statements(parent: ast.AST) -> Iterator[_Site]:
    """Statements that are left out: calls, state that is kept or forgotten, errors, early ends."""
    is_body_of_module = isinstance(parent, ast.Module | ast.ClassDef)
    for name in ("body", "orelse", "finalbody"):
        body = getattr(parent, name, None)
        if not isinstance(body, list) or is_body_of_module:
            continue
        for index, each in enumerate(body):
            if _can_be_left_out(each):
                text = _shown(each)
                drop = _item_setter(body, index)
                yield _Site(each, "dropped statement", text, lambda drop=drop: drop(ast.Pass()))  # type: ignore[misc]


def _can_be_left_out(each: ast.AST) -> bool:
    if isinstance(each, ast.Expr):
        return isinstance(each.value, ast.Call | ast.Await)
    if isinstance(each, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = each.targets if isinstance(each, ast.Assign) else [each.target]
        return any(_is_state(target) for target in targets)
    if isinstance(each, ast.Return):
        return each.value is None
    return isinstance(each, ast.Raise | ast.Delete | ast.Continue | ast.Break)


def _is_state(target: ast.AST) -> bool:
    if isinstance(target, ast.Tuple):
        return any(_is_state(each) for each in target.elts)
    return isinstance(target, ast.Attribute | ast.Subscript)


def _expressions(node: ast.expr, put: Callable[[Any], None]) -> Iterator[_Site]:
    """Yield the expressions that may replace one."""

    def site(kind: str, new: ast.expr) -> _Site:
        change = f"{_shown(node)} -> {_shown(new)}"
        return _Site(node, kind, change, lambda: put(ast.copy_location(new, node)))

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in _COMPARISONS.get(type(node.ops[0]), ()):
            yield site("comparison", ast.Compare(node.left, [other()], node.comparators))
    elif isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            for other in _COMPARISONS.get(type(operator), ()):
                ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                yield site("comparison", ast.Compare(node.left, ops, node.comparators))
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield site("boolean operator", ast.BoolOp(other_op, node.values))
        for index in range(len(node.values)):
            rest = [*node.values[:index], *node.values[index + 1 :]]
            yield site("condition", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield site("condition", node.operand)
    elif isinstance(node, ast.Constant):
        for value in _other_values(node.value):
            yield site("constant", ast.Constant(value))
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        if not _is_text(node):
            yield site("arithmetic", ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))
    elif isinstance(node, ast.IfExp):
        yield site("condition", node.body)
        yield site("condition", node.orelse)
    elif isinstance(node, ast.Tuple | ast.Set | ast.List) and isinstance(
        node.ctx if not isinstance(node, ast.Set) else ast.Load(), ast.Load
    ):
        if len(node.elts) > 1 and all(_is_code(each) for each in node.elts):
            for index in range(len(node.elts)):
                rest_of = [*node.elts[:index], *node.elts[index + 1 :]]
                new = deepcopy(node)
                new.elts = rest_of
                yield site("error left out", new)
    elif isinstance(node, ast.Subscript) and _is_key(node.slice) and isinstance(node.ctx, ast.Load):
        yield site("state per partition", ast.Subscript(node.value, _first(node.slice), node.ctx))
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        yield site("slice", node.value)


def _other_values(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int) and abs(value) >= _MEASURE:
        return (value * 10, value // 10)
    if isinstance(value, int):
        return (value + 1, value - 1) if value else (1,)
    if isinstance(value, float):
        return (value * 10, 0.0)
    return ()


def _is_text(node: ast.BinOp) -> bool:
    parts = (node.left, node.right)
    return any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in parts)


def _is_code(node: ast.expr) -> bool:
    """A number of the protocol, or the name of one."""
    if isinstance(node, ast.Starred):
        return True
    if isinstance(node, ast.Name):
        return node.id.startswith("_") and node.id.isupper()
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_key(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in _KEYS


def _first(key: ast.expr) -> ast.expr:
    """The first partition of the same topic."""
    zero = ast.Constant(0)
    topic = ast.Subscript(key, ast.Constant(0), ast.Load())
    return ast.Tuple([topic, zero], ast.Load())


def _calls(node: ast.Call) -> Iterator[_Site]:
    """Functions in place of others, lookups of another partition, and fields of requests left at
    their defaults."""
    if isinstance(node.func, ast.Name) and node.func.id in _COUNTERPARTS:
        name = _COUNTERPARTS[node.func.id]
        if name != "list" or not node.keywords:
            put = _setter(node, "func")
            change = f"{_shown(node)} -> {name}(...)"
            yield _Site(node, "function", change, lambda: put(ast.Name(name, ast.Load())))
    if isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKUPS and node.args:
        key = node.args[0]
        if _is_key(key):
            put_key = _item_setter(node.args, 0)
            yield _Site(
                node, "state per partition", f"{_shown(node)} -> {_shown(_first(key))}",
                lambda: put_key(_first(key)),
            )  # fmt: skip
    if _makes_a_message(node):
        for index, each in enumerate(node.keywords):
            rest = [*node.keywords[:index], *node.keywords[index + 1 :]]
            put_all = _setter(node, "keywords")
            yield _Site(
                each.value, _LEFT_OUT, f"{each.arg}={_shown(each.value)}",
                lambda rest=rest, put_all=put_all: put_all(rest),  # type: ignore[misc]
            )  # fmt: skip


def _makes_a_message(node: ast.Call) -> bool:
    """``message("FetchRequest")(...)``, or a variable in its place, with fields alone."""
    if node.args or not node.keywords or any(each.arg is None for each in node.keywords):
        return False
    if isinstance(node.func, ast.Call):
        return isinstance(node.func.func, ast.Name) and node.func.func.id == "message"
    return isinstance(node.func, ast.Name) and node.func.id.islower() and node.func.id in (
        "row", "topic", "request", "part", "owned", "member", "group", "topics", "body",
        "partition", "forgotten_topic",
    )  # fmt: skip


def _fields(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Site]:
    """Fields that are read in place of others of the same row or answer."""
    reads: dict[str, list[ast.Attribute]] = {}
    for node in _walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            if of in _ROWS:
                reads.setdefault(of, []).append(node)
    for nodes in reads.values():
        names = list(dict.fromkeys(each.attr for each in nodes))
        if len(names) < 2:
            continue
        for node in nodes:
            other = names[(names.index(node.attr) + 1) % len(names)]
            put = _setter(node, "attr")
            yield _Site(
                node, "field", f"{_shown(node)} -> .{other}",
                lambda put=put, other=other: put(other),  # type: ignore[misc]
            )  # fmt: skip


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 70 else f"{text[:69]}…"


# ---- which lines show a change -------------------------------------------------------------------


class _Scopes:
    """What surrounds each node, and who uses the names of the module and of its classes."""

    def __init__(self, tree: ast.Module) -> None:
        self._parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }
        self._uses: dict[str, set[int]] = {}
        self._constants: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._use(node, node.id)
            elif isinstance(node, ast.Attribute):
                self._use(node, node.attr)

    @property
    def lines_by_name(self) -> Mapping[str, frozenset[int]]:
        return {name: frozenset(lines) for name, lines in self._uses.items()}

    def _use(self, node: ast.AST, name: str) -> None:
        statement, function = self._surroundings(node)
        if function is not None:
            self._uses.setdefault(name, set()).update(_span(statement))
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            defined = _name_of(statement)
            if defined is not None:
                self._constants.setdefault(name, set()).add(defined)

    def _surroundings(self, node: ast.AST) -> tuple[ast.stmt, ast.AST | None]:
        """The statement that a node is a part of, and the function that it is in."""
        statement: ast.stmt | None = node if isinstance(node, ast.stmt) else None
        at: ast.AST | None = self._parents.get(node)
        while at is not None and not isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
            if statement is None and isinstance(at, ast.stmt):
                statement = at
            at = self._parents.get(at)
        if statement is None:
            assert isinstance(at, ast.stmt)
            statement = at  # in the head of a function
        return statement, None if statement is at else at

    def comparable(self, site: _Site) -> ast.expr | None:
        """Return the largest expression around a change that may be computed twice."""
        if site.kind == _LEFT_OUT or self._surroundings(site.node)[1] is None:
            return None
        found: ast.expr | None = None
        at: ast.AST | None = site.node
        while at is not None and not isinstance(at, ast.stmt | ast.Lambda):
            if isinstance(at, ast.expr) and not isinstance(at, ast.Starred):
                is_read = isinstance(getattr(at, "ctx", ast.Load()), ast.Load)
                if not is_read or not all(_has_no_effect(each) for each in ast.walk(at)):
                    break
                found = at
            at = self._parents.get(at)
        return found

    def place_of(self, node: ast.AST) -> str:
        """The functions and classes around a node, or the constant that it is a part of."""
        parts: list[str] = []
        at: ast.AST | None = node
        while at is not None:
            if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                parts.insert(0, at.name)
            elif isinstance(at, ast.Assign | ast.AnnAssign) and not self._in_function(at):
                parts.insert(0, _name_of(at) or "")
            at = self._parents.get(at)
        return ".".join(parts)

    def _in_function(self, node: ast.AST) -> bool:
        at = self._parents.get(node)
        while at is not None:
            if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
                return True
            at = self._parents.get(at)
        return False

    def shown_by(self, node: ast.AST) -> tuple[frozenset[int], frozenset[str]]:
        statement, function = self._surroundings(node)
        if function is not None:
            return frozenset(_span(statement)), frozenset()
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):  # a default
            return frozenset(line for each in statement.body for line in _span(each)), frozenset()
        name = _name_of(statement)
        if name is None:
            return frozenset(), frozenset()
        names, reached = {name}, [name]
        while reached:  # a constant of constants
            new = self._constants.get(reached.pop(), set()) - names
            names |= new
            reached += new
        lines = frozenset(line for each in names for line in self._uses.get(each, ()))
        is_public = not name.startswith("_") or isinstance(self._parents[statement], ast.ClassDef)
        return lines, frozenset({name} if is_public else ())


def _has_no_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
        return False
    if not isinstance(node, ast.Call):
        return True
    if isinstance(node.func, ast.Name):
        return node.func.id in _PURE
    return isinstance(node.func, ast.Attribute) and node.func.attr in _PURE


def _span(statement: ast.stmt) -> range:
    """The lines of a simple statement, or of the head of a compound one."""
    body = getattr(statement, "body", None)
    last = statement.end_lineno or statement.lineno
    if isinstance(body, list) and body:
        last = max(statement.lineno, body[0].lineno - 1)
    return range(statement.lineno, last + 1)
