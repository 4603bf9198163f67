"""Turn selected fields of a (message, version) into levels and leaves: what is a row, and what
repeats.

A *level* is the message, or the elements of an array of structs on the selected paths; the elements
of the last level are the rows. A *leaf* is a selected field. It belongs to the level whose struct
contains it, directly or in nested structs. Both engines read bodies according to this layout, so
this module decides what is refused and the names and types of the columns. It reads no bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kproto.codec.runtime import unsigned_varint
from kproto.codegen.plan import FORMATS, FieldPlan, MessagePlan, StructPlan
from kproto.errors import SelectionError, UnknownNameError
from kproto.schema.model import Kind, NewStruct

__all__ = ["ARROW_FORMATS", "Field", "Layout", "Leaf", "Level", "lay_out"]

ARROW_FORMATS: Final[Mapping[str, str]] = {
    "bool": "b", "int8": "c", "int16": "s", "uint16": "S", "int32": "i", "uint32": "I",
    "int64": "l", "float64": "g", "uuid": "w:16", "string": "u", "bytes": "z", "array": "+l",
}  # fmt: skip
"""Kind -> format string of Arrow's C data interface."""


class Field(NamedTuple):
    """A column without values. ``path`` is in Python names, whichever names selected it;
    ``element`` is the kind of an array's elements, else None."""

    name: str
    path: str
    kind: Kind
    element: Kind | None
    nullable: bool

    @property
    def format(self) -> str:
        """The format string of Arrow's C data interface; "+l" for an array."""
        return ARROW_FORMATS[self.kind]


class Leaf(NamedTuple):
    """The number of the column, and the path from the level's struct to its field."""

    column: int
    fields: tuple[FieldPlan, ...]


class Level(NamedTuple):
    """``line`` is the path to the array that is the next level; () at the last level."""

    struct: StructPlan
    leaves: tuple[Leaf, ...]
    line: tuple[FieldPlan, ...]

    def described(self) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """Describe the levels to C: positions of fields among the inline, tagged and absent fields
        of their structs, and the default of each leaf as encoded, None for null."""
        leaves = tuple(
            (leaf.column, _positions(self.struct, leaf.fields), _default_on_the_wire(leaf))
            for leaf in self.leaves
        )
        return _positions(self.struct, self.line), leaves


class Layout(NamedTuple):
    """``row`` is the path of the array whose elements are the rows, or "" for the message
    itself."""

    fields: tuple[Field, ...]
    levels: tuple[Level, ...]
    row: str


Chain = tuple[FieldPlan, ...]


def lay_out(plan: MessagePlan, chosen: Mapping[str, str]) -> Layout:
    """``chosen`` maps the name of each column to the path of its field.

    Raises UnknownNameError for a field that the message lacks, and SelectionError for one that no
    column can hold, for arrays that are not nested in each other, and for a field selected twice.
    """
    if not chosen:
        raise SelectionError("no field was selected")
    chains = {name: _resolve(plan, path) for name, path in chosen.items()}
    line = _line(plan, chains.values())
    fields = tuple(_field(plan.root, name, chain) for name, chain in chains.items())
    seen: dict[str, str] = {}
    for field in fields:
        if seen.setdefault(field.path, field.name) != field.name:
            raise SelectionError(f"{field.path} was selected twice")
    return Layout(fields, _levels(plan.root, line, list(chains.values())), _path(line))


def _levels(root: StructPlan, line: Chain, chains: list[Chain]) -> tuple[Level, ...]:
    cuts = [0, *(at + 1 for at, item in enumerate(line) if item.kind == "array")]
    levels = []
    for depth, start in enumerate(cuts):
        leaves = tuple(
            Leaf(column, chain[start:])
            for column, chain in enumerate(chains)
            if sum(item.kind == "array" for item in chain[:-1]) == depth
        )
        end = cuts[depth + 1] if depth + 1 < len(cuts) else start
        levels.append(Level(_struct_after(root, line[:start]), leaves, line[start:end]))
    return tuple(levels)


def _struct_after(root: StructPlan, chain: Chain) -> StructPlan:
    found = chain[-1].struct if chain else root
    assert found is not None  # a chain passes only through structs
    return found


def _line(plan: MessagePlan, chains: Iterable[Chain]) -> Chain:
    """Return the path to the deepest array of structs, which must pass through every other one."""
    deepest: Chain = ()
    ways = [_to_last_array(chain[:-1]) for chain in chains]
    for way in ways:
        if len(way) > len(deepest):
            deepest = way
    for way in ways:
        if deepest[: len(way)] != way:
            raise SelectionError(
                f"{_path(way)} and {_path(deepest)} of {plan.message} are arrays side by side: a "
                "row is an element of one of them; select each apart"
            )
    return deepest


def _to_last_array(chain: Chain) -> Chain:
    while chain and chain[-1].kind != "array":
        chain = chain[:-1]
    return chain


def _path(chain: Chain) -> str:
    return ".".join(item.name for item in chain)


def _resolve(plan: MessagePlan, path: str) -> Chain:
    chain: Chain = ()
    for name in path.split("."):
        if chain and chain[-1].struct is None:
            raise SelectionError(f"{_path(chain)} is {_typed(chain[-1])}: it has no field {name!r}")
        struct = _struct_after(plan.root, chain)
        found = next((item for item in struct.order if _is_called(item, name)), None)
        if found is None:
            where = f"{_path(chain)} of {plan.message}" if chain else plan.message
            known = ", ".join(item.name for item in struct.order) or "no field at all"
            raise UnknownNameError(f"{where} has no field {name!r}; it has {known}")
        chain += (found,)
    struct_of = chain[-1].struct
    if struct_of is not None:
        inner = ", ".join(f"{_path(chain)}.{item.name}" for item in struct_of.order)
        raise SelectionError(
            f"{_path(chain)} is {_typed(chain[-1])}: select from its fields {inner}"
        )
    return chain


def _is_called(item: FieldPlan, name: str) -> bool:
    return name in (item.name, item.json_name, *item.json_aliases)


def _typed(item: FieldPlan) -> str:
    if item.kind == "array":
        return (
            "an array of structs" if item.struct is not None else f"an array of {item.element_kind}"
        )
    return "a struct" if item.kind == "struct" else str(item.kind)


def _field(root: StructPlan, name: str, chain: Chain) -> Field:
    item = chain[-1]
    # Beyond the last array: an element is never null, so nothing before it matters.
    start = len(_to_last_array(chain[:-1]))
    nullable = any(
        _may_be_null(_struct_after(root, chain[:at]), chain[at]) for at in range(start, len(chain))
    )
    return Field(name, _path(chain), item.kind, item.element_kind, nullable)


def _may_be_null(struct: StructPlan, item: FieldPlan) -> bool:
    """Whether the column may hold nulls: on the wire, or by a default of null at versions without
    the field."""
    return item.nullable or (item.default is None and item not in struct.inline)


def _positions(struct: StructPlan, fields: Chain) -> tuple[int, ...]:
    positions = []
    for item in fields:
        positions.append((*struct.inline, *struct.tagged, *struct.absent).index(item))
        if item.struct is not None:
            struct = item.struct
    return tuple(positions)


def _default_on_the_wire(leaf: Leaf) -> bytes | None:
    item = leaf.fields[-1]
    default: Any = item.default
    assert not isinstance(default, NewStruct)
    if default is None:
        return None
    if item.kind in FORMATS:
        return struct.pack(f">{FORMATS[item.kind]}", default)
    if item.kind == "uuid":
        return bytes(default.bytes)
    raw = default.encode() if isinstance(default, str) else bytes(default)  # the () of an array
    if item.compact:
        return unsigned_varint(len(raw) + 1) + raw
    return struct.pack(">h" if item.kind == "string" else ">i", len(raw)) + raw
