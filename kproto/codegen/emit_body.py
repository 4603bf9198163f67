"""Generate the code that reads a whole body at once, by its size (``BodyTable``).

It applies to messages of numbers and strings only (``shapes.has_body_shape``). The code of
``emit_decode`` that follows reads all other bodies, and the first body of each size.
"""

from __future__ import annotations

from kproto.codegen.names import class_name
from kproto.codegen.plan import StructPlan
from kproto.codegen.shapes import MAX_SHAPES
from kproto.codegen.text import Text

__all__ = ["constructor_call", "learn_body", "read_known_body"]


def constructor_call(plan: StructPlan, arguments: dict[str, str]) -> str:
    """Return the expression that makes a struct from the expressions of its fields, by name."""
    keywords = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return f"{class_name(plan)}({keywords})"


def read_known_body(text: Text, plan: StructPlan) -> None:
    """Emit a return of the message if a body of this size was decoded before and the strings have
    the same lengths. The generated code leaves ``shape`` None if no such body was decoded."""
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
    """Emit the recording of the shape of a body that the general code has decoded."""
    few = f"len(bodies) < {MAX_SHAPES}"
    text.line(f"if shape is None and p == end and {few}: bodies.learn(end, {message})")
