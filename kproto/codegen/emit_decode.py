"""Turn a plan into the text of a decoder. This module contains no wire rules; see ``plan``.

The code has the shape that CPython runs fastest. Each message is one function with its nested
structs inlined. One ``Struct`` reads a run of fixed-width fields together with the length byte that
follows; a string of up to 127 bytes is read together with the numbers after it
(``runtime.strings``); arrays of numbers go through a table of unpackers, and arrays of structs of
fixed width through ``iter_unpack``. Bounds are checked late: slices past the end are short, reads
past the end raise, and a final ``p > end`` catches the rest. Counts are checked before any loop. On
any failure the bytes are passed to ``interpreter``, which finds the exact error.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kproto.codegen.emit_body import constructor_call, learn_body, read_known_body
from kproto.codegen.names import class_name
from kproto.codegen.plan import FieldPlan, MessagePlan, StructPlan, repeated_structs
from kproto.codegen.shapes import MIN_ROWS, Shape, has_body_shape, shape_of
from kproto.codegen.text import CodecText, Text
from kproto.schema.model import NewStruct

__all__ = ["decoder_text"]

MAX_DEPTH = 12
"""Nesting of loops and branches in one function. CPython allows 20; deeper structs get a function
of their own."""


def decoder_text(plan: MessagePlan) -> CodecText:
    emitter = _Emitter(repeated_structs(plan.root))
    body = emitter.function("decode", plan.root, whole=True)
    return CodecText("\n\n".join([*emitter.functions, body]), emitter.constants, emitter.shapes)


class _String(NamedTuple):
    """A string to be read. Its local variable holds the length as written on the wire."""

    target: str
    compact: bool
    nullable: bool


class _Emitter:
    def __init__(self, repeated: frozenset[StructPlan]) -> None:
        self.repeated = repeated
        self.constants: dict[str, str] = {}
        self.functions: list[str] = []
        self.shapes: dict[str, Shape] = {}
        self.split: dict[int, str] = {}
        self.text = Text(self.constants)
        self.pending: list[tuple[str, str]] = []
        # A string whose length was read. Its bytes precede the pending numbers.
        self.string: _String | None = None

    def function(self, name: str, plan: StructPlan, *, whole: bool) -> str:
        """Return the source of a function ``name(buf, p)`` -> (object, p).

        The root's function (``whole``) takes an offset instead of ``p``. Without an offset it reads
        a body that fills the buffer and returns the object alone. It also handles all exceptions.
        """
        outer = self.text, self.pending, self.string
        self.text, self.pending, self.string = Text(self.constants), [], None
        text = self.text
        if whole:
            with text.block(f"def {name}(buf, offset=None):"):
                text.line("end = len(buf)")
                shaped = has_body_shape(plan)
                with text.block("try:"):
                    if shaped:
                        read_known_body(text, plan)
                    text.line("p = offset or 0")
                    target = self.struct(plan)
                text.line("except Exception:")
                text.line("    return explain(buf, offset)")
                with text.block("if offset is None:"):
                    if shaped:
                        learn_body(text, target)
                    text.line(f"if p == end: return {target}")
                    text.line("if p < end: raise trailing_bytes(buf, p)")
                text.line(f"elif p <= end: return {target}, p")
                text.line("return explain(buf, offset)")
        else:
            with text.block(f"def {name}(buf, p):"):
                text.line("end = len(buf)")
                text.line(f"return {self.struct_fields(plan)}, p")
        source = "\n".join(text.lines)
        self.text, self.pending, self.string = outer
        return source

    def split_function(self, plan: StructPlan) -> str:
        """Return the name of a separate function for a struct that is nested too deeply to
        inline."""
        name = self.split.get(id(plan))
        if name is None:
            name = self.split[id(plan)] = f"decode_{len(self.split)}"
            self.functions.append(self.function(name, plan, whole=False))
        return name

    def read(self, letter: str, target: str) -> None:
        """Read one number into ``target`` at the next flush, together with its neighbours."""
        self.pending.append((letter, target))

    def flush(self) -> None:
        string, self.string = self.string, None
        letters = "".join(letter for letter, _ in self.pending)
        targets = [target for _, target in self.pending]
        self.pending = []
        if string is not None:
            self.string_and(string, letters, targets)
        elif letters:
            self.text.line(self.unpack(letters, targets))

    def unpack(self, letters: str, targets: list[str]) -> str:
        """Return the statements that read ``letters`` at ``p``."""
        if letters == "B":
            return f"{targets[0]} = buf[p]; p += 1"
        name = self.text.constant(f"U_{letters}", f"Struct('>{letters}').unpack_from")
        comma = "," if len(targets) == 1 else ""
        size = struct.calcsize(f">{letters}")
        return f"{', '.join(targets)}{comma} = {name}(buf, p); p += {size}"

    def string_and(self, string: _String, letters: str, targets: list[str]) -> None:
        """Read the bytes of a string and the numbers that follow it.

        A length of one byte is an index into a table of unpackers that read both at once. Entry 0
        raises, since it stands for null.
        """
        text, (target, compact, nullable) = self.text, string
        size = struct.calcsize(f">{letters}") - compact
        plus = f" + {size}" if size > 0 else " - 1" if size < 0 else ""
        then = f"; {self.unpack(letters, targets)}" if letters else ""
        if letters:
            first = "S" if compact else "H"
            table = text.constant(f"{first}_{letters}", f"strings({letters!r}, {int(compact)})")
            read = f"{', '.join([target, *targets])} = {table}[{target}](buf, p)"
        else:
            read = f"{target} = buf[p:q]"
        null = f"not {target}" if compact else f"{target} == -1"
        lowest = "" if compact and letters and not nullable else "0 < " if compact else "0 <= "
        decode = f"{target} = {target}.decode()"
        text.line(
            f"if {lowest}{target} < 128: q = p + {target}{plus}; {read}; p = q"
            + (f"; {decode}" if nullable else "")
        )
        if nullable:
            text.line(f"elif {null}: {target} = None{then}")
        long = "long_string" if compact else "int16_string"
        text.line(
            f"else: {target}, p = {long}(buf, p, {target}){then}"
            + (f"; {decode}" if nullable else "")
        )
        if not nullable:
            text.line(decode)

    def struct(self, plan: StructPlan) -> str:
        """Emit the reading of a struct. Returns the local variable that holds it."""
        text = self.text
        if text.depth > MAX_DEPTH or plan in self.repeated:
            self.flush()
            target = text.name("o")
            text.line(f"{target}, p = {self.split_function(plan)}(buf, p)")
            return target
        return self.struct_fields(plan)

    def struct_fields(self, plan: StructPlan) -> str:
        text = self.text
        target = text.name("o")
        arguments: dict[str, str] = {}
        for item in plan.inline:
            local = arguments[item.name] = text.name(item.name)
            self.field(item, local)
        unknown = None
        if plan.flexible:
            unknown = text.name("tags")
            self.read("B", unknown)
            self.flush()
        else:
            self.flush()
        # Fields that the version lacks and absent tagged fields are left out of the call: the class
        # has the defaults.
        make = f"{target} = {constructor_call(plan, arguments)}"
        if unknown is not None and (plan.tagged or plan.foreign_names):
            with text.block(f"if {unknown}:"):
                self.tagged_section(plan, unknown, arguments)
                text.line(f"{target} = {constructor_call(plan, arguments)}")
                text.line(f"if {unknown}: {target}._unknown_tags = {unknown}")
            text.line(f"else: {make}")
            return target
        text.line(make)
        if unknown is not None:
            text.line(f"if {unknown}: {target}._unknown_tags, p = unknown_tags(buf, p, {unknown})")
        return target

    def tagged_section(self, plan: StructPlan, count: str, arguments: dict[str, str]) -> None:
        """Read known tagged fields. Leaves the dict of unknown tags in ``count``."""
        text = self.text
        for item in plan.tagged:
            local = arguments[item.name] = text.name(item.name)
            text.line(f"{local} = {self.default(item)}")
        unknown, last = text.name("unknown"), text.name("last")
        tag, stop = text.name("tag"), text.name("stop")
        text.line(f"if {count} > 127: {count}, p = varint(buf, p, {count})")
        text.line(f"{unknown} = {{}}; {last} = -1")
        with text.block(f"for _ in range({count}):"):
            text.line(f"{tag} = buf[p]; p += 1")
            text.line(f"if {tag} > 127: {tag}, p = varint(buf, p, {tag})")
            text.line(f"if {tag} <= {last}: raise FastPathMiss")
            text.line(f"{last} = {tag}")
            text.line(f"{stop} = buf[p]; p += 1")
            text.line(f"if {stop} > 127: {stop}, p = varint(buf, p, {stop})")
            text.line(f"{stop} += p")
            text.line(f"if {stop} > end: raise FastPathMiss")
            for index, item in enumerate(plan.tagged):
                with text.block(f"{'elif' if index else 'if'} {tag} == {item.tag}:"):
                    self.field(item, arguments[item.name])
                    self.flush()
            if plan.foreign_names:
                branch = "elif" if plan.tagged else "if"
                text.line(f"{branch} {tag} in {set(plan.foreign_tags)}: raise FastPathMiss")
            unknown_tag = f"{unknown}[{tag}] = buf[p:{stop}]; p = {stop}"
            text.line(f"else: {unknown_tag}")
            text.line(f"if p != {stop}: raise FastPathMiss")
        text.line(f"{count} = {unknown}")

    def default(self, item: FieldPlan) -> str:
        if isinstance(item.default, NewStruct):
            assert item.struct is not None
            return f"{class_name(item.struct)}()"
        if item.default == ():
            return "[]"
        if item.kind == "uuid":
            return self.text.constant(f"D_{item.name}", f"UUID({str(item.default)!r})")
        if isinstance(item.default, float):
            return f"float({str(item.default)!r})"
        return repr(item.default)

    def field(self, item: FieldPlan, target: str) -> None:
        if item.format is not None:
            self.read(item.format, target)
        elif item.kind == "array":
            self.array(item, target)
        elif item.kind == "struct":
            self.struct_field(item, target)
        else:
            self.scalar(item.kind, item, item.nullable, target)

    def scalar(self, kind: str, item: FieldPlan, nullable: bool, target: str) -> None:
        """Read a uuid, a string or bytes: a field, or an element of an array."""
        text = self.text
        if kind == "uuid":
            self.flush()
            text.line(f"{target} = make_uuid(buf[p:p+16]); p += 16")
            return
        if kind == "string":
            self.read("B" if item.compact else "h", target)
            self.flush()
            self.string = _String(target, item.compact, nullable)
            return
        if item.compact:
            self.read("B", target)
            self.flush()
            text.line(f"if {target} > 127: {target}, p = varint(buf, p, {target})")
            text.line(f"if {target}: q = p + {target} - 1; {target} = buf[p:q]; p = q")
            text.line(f"else: {target} = None" if nullable else "else: raise FastPathMiss")
            return
        self.read("i", target)
        self.flush()
        text.line(f"if {target} >= 0: q = p + {target}; {target} = buf[p:q]; p = q")
        if nullable:
            text.line(f"elif {target} == -1: {target} = None")
        text.line("else: raise FastPathMiss")

    def struct_field(self, item: FieldPlan, target: str) -> None:
        assert item.struct is not None
        text = self.text
        if not item.nullable:
            text.line(f"{target} = {self.struct(item.struct)}")
            return
        null, present = item.markers
        self.read("B", target)
        self.flush()
        text.line(f"if {target} == {null}: {target} = None")
        text.line(f"elif {target} != {present}: raise FastPathMiss")
        with text.block("else:"):
            text.line(f"{target} = {self.struct(item.struct)}")

    def array(self, item: FieldPlan, target: str) -> None:
        """Read an array. Compact counts are read as written, one more than the number of elements;
        ``count`` below is the expression for that number."""
        text = self.text
        self.read("B" if item.compact else "i", target)
        self.flush()
        if item.element_format is not None:
            self.numbers(item, target)
            return
        if item.compact:
            text.line(f"if {target} > 127: {target}, p = varint(buf, p, {target})")
            count, null = f"({target} - 1)", f"not {target}"
        else:
            count, null = target, f"{target} < 0"
        if item.nullable:
            with text.block(f"if {null}:"):
                if not item.compact:
                    text.line(f"if {target} < -1: raise FastPathMiss")
                text.line(f"{target} = None")
            with text.block("else:"):
                self.elements(item, target, count)
        else:
            text.line(f"if {null}: raise FastPathMiss")
            self.elements(item, target, count)

    def numbers(self, item: FieldPlan, target: str) -> None:
        """Read an array of numbers. The table of unpackers is indexed by count + 1."""
        text = self.text
        letter = item.element_format
        assert letter is not None
        width = struct.calcsize(letter)
        table = text.constant(f"T_{letter}", f"unpackers({letter!r})")
        empty, limit = ("1", "< 128") if item.compact else ("0", "< 127")
        index = target if item.compact else f"{target} + 1"
        text.line(f"if {target} == {empty}: {target} = []")
        lowest = "" if item.compact and not item.nullable else "0 < "
        with text.block(f"elif {lowest}{target} {limit}:"):
            size = f"{width} * {target} - {width}" if item.compact else f"{width} * {target}"
            text.line(f"q = p + {size}; {target} = [*{table}[{index}](buf, p)]; p = q")
        if item.nullable:
            null = "not " + target if item.compact else f"{target} == -1"
            text.line(f"elif {null}: {target} = None")
        if item.compact:
            with text.block("else:"):
                text.line(f"{target}, p = varint(buf, p, {target})")
                text.line(f"{target}, p = long_array(buf, p, {target} - 1, {letter!r})")
        else:
            text.line(f"else: {target}, p = long_array(buf, p, {target}, {letter!r})")

    def elements(self, item: FieldPlan, target: str, count: str) -> None:
        text = self.text
        text.line(f"if {count} * {item.element_min_size} > end - p: raise FastPathMiss")
        values = text.name("a")
        if item.element_kind == "struct":
            assert item.struct is not None
            if item.struct.fixed_format is not None:
                self.fixed_structs(item.struct, values, count)
            else:
                self.struct_loop(item.struct, values, count)
        else:
            element = text.name("e")
            text.line(f"{values} = []")
            with text.block(f"for _ in range({count}):"):
                assert item.element_kind is not None
                self.scalar(item.element_kind, item, False, element)
                self.flush()
                text.line(f"{values}.append({element})")
        text.line(f"{target} = {values}")

    def struct_loop(self, plan: StructPlan, values: str, count: str) -> None:
        text = self.text
        shape = shape_of(plan)
        text.line(f"{values} = []")
        if shape is None or text.depth > MAX_DEPTH:
            with text.block(f"for _ in range({count}):"):
                text.line(f"{values}.append({self.struct(plan)})")
            return
        # Runs are first read with the last shape. The element where that fails may give the shape
        # of those after it; if that fails too, the rest is read one by one.
        guess = text.constant(f"G_{plan.name}", f"runs[{plan.name!r}].guess")
        learn = text.constant(f"L_{plan.name}", f"runs[{plan.name!r}].learn")
        self.shapes[plan.name] = shape
        left, runs, stop = text.name("left"), text.name("runs"), text.name("stop")
        text.line(f"{left} = {count}; {runs} = {left} >= {MIN_ROWS}")
        text.line(f"if {runs}: p = {guess}(buf, p, {left}, {values}); {left} -= len({values})")
        with text.block(f"while {left}:"):
            text.line(f"{values}.append({self.struct(plan)}); {left} -= 1")
            with text.block(f"if {runs} and {left} >= {MIN_ROWS}:"):
                text.line(f"{stop} = {learn}(buf, p, {left}, {values}); {runs} = {stop} != p")
                text.line(f"p = {stop}; {left} = {count} - len({values})")

    def fixed_structs(self, plan: StructPlan, values: str, count: str) -> None:
        """Read elements of one width. A flexible one ends in its tag count, which is almost always
        0."""
        text = self.text
        letters = plan.fixed_format
        assert letters is not None
        width = struct.calcsize(f">{letters}") + plan.flexible
        stop = text.name("stop")
        text.line(f"{stop} = p + {width} * {count}")
        if not plan.flexible:
            self.rows(plan, letters, values, count, stop)
            return
        with text.block(f"if buf[p+{width - 1}:{stop}:{width}].count(0) != {count}:"):
            text.line(f"{values} = []")
            with text.block(f"for _ in range({count}):"):
                text.line(f"{values}.append({self.struct(plan)})")
        with text.block("else:"):
            self.rows(plan, f"{letters}x", values, count, stop)

    def rows(self, plan: StructPlan, letters: str, values: str, count: str, stop: str) -> None:
        """Read elements that hold only numbers. Above a certain count, one ``unpack`` of all
        numbers and a ``zip`` are faster than one tuple for each element."""
        text = self.text
        each = text.constant(f"I_{letters}", f"Struct('>{letters}').iter_unpack")
        table = text.constant(f"R_{letters}", f"repeated({letters!r})")
        rows, numbers = text.name("rows"), text.name("numbers")
        names = [text.name(item.name) for item in plan.inline]
        dealt = ", ".join([numbers] * len(names))
        text.line(
            f"if 16 < {count} < 128: {numbers} = iter({table}[{count}](buf, p)); "
            f"{rows} = zip({dealt})"
        )
        text.line(f"else: {rows} = {each}(buf[p:{stop}])")
        call = constructor_call(
            plan, dict(zip([item.name for item in plan.inline], names, strict=True))
        )
        targets = ", ".join(names) + ("," if len(names) == 1 else "")
        text.line(f"{values} = [{call} for {targets} in {rows}]; p = {stop}")
