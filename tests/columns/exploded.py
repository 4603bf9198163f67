"""Which fields can be columns together, and the rows they should give, by the schema.

Written apart from ``kproto.columns``, which goes by the plan: it is what the tests hold that to.
"""

import random
from typing import Any

from kproto.schema.model import Field, MessageSchema, Struct

__all__ = ["explode", "leaves", "lines", "some_of"]

Leaves = dict[str, str]
"""Path of each field that can be a column -> path of the innermost array of structs around it."""


def leaves(struct: Struct, prefix: str = "", array: str = "") -> Leaves:
    found: Leaves = {}
    for field in struct.fields:
        path = prefix + field.python_name
        inner = field.type.inner_struct
        if inner is None:
            found[path] = array
        else:
            around = path if field.type.element is not None else array
            found |= leaves(inner, path + ".", around)
    return found


def lines(schema: MessageSchema) -> list[list[str]]:
    """For each array of structs (and the message): every field that can be a column beside it."""
    every = leaves(schema.root)
    return [
        [path for path, array in every.items() if array in around(line, every)]
        for line in dict.fromkeys(every.values())
    ]


def around(line: str, every: Leaves) -> set[str]:
    """The array itself, and the arrays it is in."""
    arrays = {array for array in every.values() if f"{line}.".startswith(f"{array}.")}
    return arrays | {"", line}


def some_of(schema: MessageSchema, rng: random.Random) -> list[str]:
    fitting = rng.choice(lines(schema) or [[]])
    return rng.sample(fitting, rng.randint(1, min(6, len(fitting)))) if fitting else []


def explode(struct: Struct, value: Any, paths: list[str]) -> list[dict[str, Any]]:
    """The rows of one message object (or of a struct in it, which may be None)."""
    rows: list[dict[str, Any]] = [{}]
    for name in dict.fromkeys(path.partition(".")[0] for path in paths):
        field = struct.field(name)
        below = [p.partition(".")[2] for p in paths if p.partition(".")[0] == name]
        inner = None if value is None else getattr(value, name)
        cells = [
            {(f"{name}.{path}" if path else name): cell for path, cell in row.items()}
            for row in _cells(field, inner, below)
        ]
        rows = [one | other for one in rows for other in cells]
    return rows


def _cells(field: Field, value: Any, below: list[str]) -> list[dict[str, Any]]:
    struct = field.type.inner_struct
    if struct is None:
        return [{"": value}]
    if field.type.element is None:
        return explode(struct, value, below)
    return [row for element in value or () for row in explode(struct, element, below)]
