"""Plan -> the text that reads a whole body at once, by its size (``shapes.BodyTable``).

For messages of numbers and strings only (``shapes.has_body_shape``). What it cannot read, and all
of the first body of a size, is left to the code of ``emit_decode`` that follows it.
"""

from __future__ import annotations

from kproto.codegen.names import class_name
from kproto.codegen.plan import StructPlan
from kproto.codegen.shapes import MAX_SHAPES
from kproto.codegen.text import Text

__all__ = ["constructor_call", "learn_body", "read_known_body"]


def constructor_call(plan: StructPlan, arguments: dict[str, str]) -> str:
    """The expression that makes a struct of the expressions for its fields, by name."""
    keywords = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return f"{class_name(plan)}({keywords})"


def read_known_body(text: Text, plan: StructPlan) -> None:
    """Return the message if a body of this size was met before, and the strings are as long as they
    were then. Leaves ``shape`` None where none was."""
    columns: list[str] = []
    unpack = text.name("unpack")
    known, checks, arguments = [unpack], [], {}
    for item in plan.inline:
        local = arguments[item.name] = text.name(item.name)
        if item.kind == "string":
            size, length = text.name("n"), text.name("length")
            columns.append(size)
            known.append(length)
            checks.append(f"{size} == {length}")
            null = f" if {size} {'> 0' if item.compact else '>= 0'} else None"
            arguments[item.name] = f"{local}.decode(){null if item.nullable else ''}"
        columns.append(local)
    if plan.flexible:
        columns.append(tags := text.name("tags"))
        checks.append(f"not {tags}")
    text.line("shape = bodies[end] if offset is None else ()")
    with text.block("if shape:"):
        text.line(f"{', '.join(known)} = shape")
        text.line(f"{', '.join(columns)} = {unpack}(buf)")
        text.line(f"if {' and '.join(checks)}: return {constructor_call(plan, arguments)}")


def learn_body(text: Text, message: str) -> None:
    """After ``read_known_body`` met a new size and the rest of the code has read it."""
    few = f"len(bodies) < {MAX_SHAPES}"
    text.line(f"if shape is None and p == end and {few}: bodies.learn(end, {message})")
