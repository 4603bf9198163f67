"""Turn a plan into the text of an encoder. This module contains no wire rules; see ``plan``.

Parts are appended to a list and joined once, or returned as they are (``in_parts``). Where
possible, a run of fixed-width fields, the length that follows, and the string or array after it are
one ``pack`` call. Values that the fast path cannot write (a null that is not allowed, a field that
the version lacks, a wrong type) raise an exception; ``interpreter`` then finds the exact error.
"""

from __future__ import annotations

import struct

from kproto.codegen.names import class_name
from kproto.codegen.plan import FieldPlan, MessagePlan, StructPlan, repeated_structs
from kproto.codegen.shapes import MAX_ELEMENTS, Shape, shape_of
from kproto.codegen.text import CodecText, Text
from kproto.schema.model import NewStruct

__all__ = ["encoder_text"]

MAX_DEPTH = 12
NULL_SIZE = MAX_ELEMENTS + 1
"""The size of a null array, which no shape has."""


def encoder_text(plan: MessagePlan, *, in_parts: bool = False) -> CodecText:
    """Return the source of ``encode(o)``.

    ``in_parts``: it returns a list of buffers that follow each other. Values of bytes are buffers
    of their own, and a field of bytes without a tag may hold a tuple of buffers.
    """
    emitter = _Emitter(repeated_structs(plan.root), in_parts=in_parts)
    body = emitter.function("encode", plan.root, whole=True)
    source = "\n\n".join([*emitter.functions, body])
    return CodecText(source, emitter.constants, emitter.shapes)


def _is_flat(plan: StructPlan) -> bool:
    """Whether encoding takes a fixed number of writes, without a loop over structs or strings."""
    if plan.tagged:
        return False
    return all(
        item.kind != "struct"
        and (item.kind != "array" or (item.element_format and item.element_kind != "bool"))
        for item in plan.inline
    )


class _Emitter:
    def __init__(self, repeated: frozenset[StructPlan], *, in_parts: bool) -> None:
        self.repeated = repeated
        self.in_parts = in_parts
        self.constants: dict[str, str] = {}
        self.functions: list[str] = []
        self.split: dict[int, str] = {}
        self.shapes: dict[str, Shape] = {}
        self.text = Text(self.constants)
        self.pending: list[tuple[str, str]] = []
        # The local variables that hold the writes of a flat message; None if writes go to a list.
        self.slots: list[str] | None = None

    def function(self, name: str, plan: StructPlan, *, whole: bool) -> str:
        """Return ``encode(o)`` -> bytes if ``whole``, else ``encode_N(o, w)``, which appends
        parts."""
        outer = self.text, self.pending, self.slots
        self.text, self.pending, self.slots = Text(self.constants), [], None
        text = self.text
        if whole:
            flat = _is_flat(plan) and not self.in_parts
            with text.block(f"def {name}(o):"):
                with text.block("try:"):
                    if flat:
                        self.slots = []
                    else:
                        text.line("parts = []; w = parts.append")
                    self.struct(plan, "o")
                    self.flush()
                    if self.slots is not None:
                        text.line(_concatenation(self.slots))
                    elif not flat:
                        text.line("return parts" if self.in_parts else "return b''.join(parts)")
                text.line("except Exception:")
                text.line("    return [explain(o)]" if self.in_parts else "    return explain(o)")
        else:
            with text.block(f"def {name}(o, w):"):
                self.struct_fields(plan, "o")
                self.flush()
        source = "\n".join(text.lines)
        self.text, self.pending, self.slots = outer
        return source

    def split_function(self, plan: StructPlan) -> str:
        name = self.split.get(id(plan))
        if name is None:
            name = self.split[id(plan)] = f"encode_{len(self.split)}"
            self.functions.append(self.function(name, plan, whole=False))
        return name

    def later(self, letter: str, expression: str) -> None:
        """Write one number at the next write, together with its neighbours."""
        self.pending.append((letter, expression))

    def take(self) -> tuple[str, str]:
        """Return the pending run as format letters and argument list; both may be empty."""
        letters = "".join(letter for letter, _ in self.pending)
        arguments = ", ".join(expression for _, expression in self.pending)
        self.pending = []
        return letters, arguments

    def begin(self) -> None:
        """Begin one write. Each branch that follows must make it exactly once."""
        if self.slots is not None:
            self.slots.append(self.text.name("s"))

    def write(self, expression: str) -> str:
        """Return the statement that writes the bytes of ``expression``."""
        return f"w({expression})" if self.slots is None else f"{self.slots[-1]} = {expression}"

    def pack(self, letters: str, arguments: str) -> str:
        name = self.text.constant(f"P_{letters}", f"Struct('>{letters}').pack")
        return f"{name}({arguments})"

    def flush(self) -> None:
        letters, arguments = self.take()
        if letters:
            self.begin()
            self.text.line(self.write(self.pack(letters, arguments)))

    def null(self, item: FieldPlan, pending: tuple[str, str]) -> str:
        """Return the expression for the pending numbers followed by a null."""
        letters, arguments = pending
        lead = f"{arguments}, " if arguments else ""
        if item.kind == "struct":
            value, letter = item.markers[0], "B"
        elif item.compact:
            value, letter = 0, "B"
        else:
            value, letter = -1, "h" if item.kind == "string" else "i"
        if letters:
            return self.pack(letters + letter, f"{lead}{value}")
        return repr(struct.pack(f">{letter}", value))

    def length(
        self, item: FieldPlan, count: str, pending: tuple[str, str], *, body: str = ""
    ) -> None:
        """Write the pending numbers, then the length in the local variable ``count``, then
        ``body``."""
        text = self.text
        letters, arguments = pending
        is_string = "string" in (item.kind, item.element_kind) and bool(body)
        plus = f" + {body}" if body else ""
        lead = f"{arguments}, " if arguments else ""
        if not item.compact:
            letters += "h" if is_string else "i"
            text.line(self.write(f"{self.pack(letters, lead + count)}{plus}"))
            return
        long = f"{'string_length' if is_string else 'compact'}({count})"
        if letters:
            short = self.pack(letters + "B", f"{lead}{count} + 1")
            long = f"{self.pack(letters, arguments)} + {long}"
        else:
            short = f"SHORT_LENGTH[{count}]"
        text.line(f"if {count} < 127: {self.write(short + plus)}")
        text.line(f"else: {self.write(long + plus)}")

    def struct(self, plan: StructPlan, local: str) -> None:
        text = self.text
        if text.depth > MAX_DEPTH or plan in self.repeated:
            self.flush()
            text.line(f"{self.split_function(plan)}({local}, w)")
            return
        self.struct_fields(plan, local)

    def struct_fields(self, plan: StructPlan, local: str) -> None:
        text = self.text
        for item in plan.absent:
            if not item.ignorable:
                text.line(f"if {self.differs(item, f'{local}.{item.name}')}: raise FastPathMiss")
        for item in plan.inline:
            self.field(item, f"{local}.{item.name}")
        if not plan.flexible:
            text.line(f"if {local}._unknown_tags: raise FastPathMiss")
        elif plan.tagged:
            self.tagged_section(plan, local)
        else:
            letters, arguments = self.take()
            lead = f"{arguments}, " if arguments else ""
            zero = self.pack(letters + "B", lead + "0") if letters else "b'\\0'"
            before = f"{self.pack(letters, arguments)} + " if letters else ""
            section = f"{before}tagged_section([], {local}._unknown_tags)"
            if self.slots is not None:
                done = "".join(f"{slot} + " for slot in self.slots)
                text.line(f"if {local}._unknown_tags: return {done}{section}")
                text.line(_concatenation([*self.slots, zero]))
                self.slots = None
                return
            text.line(f"if {local}._unknown_tags: {self.write(section)}")
            text.line(f"else: {self.write(zero)}")

    def tagged_section(self, plan: StructPlan, local: str) -> None:
        text = self.text
        self.flush()
        tags, outer, parts = text.name("tags"), text.name("outer"), text.name("parts")
        text.line(f"{tags} = []")
        for item in plan.tagged:
            with text.block(f"if {self.differs(item, f'{local}.{item.name}')}:"):
                text.line(f"{outer} = w; {parts} = []; w = {parts}.append")
                self.field(item, f"{local}.{item.name}")
                self.flush()
                text.line(f"w = {outer}; {tags}.append(({item.tag}, b''.join({parts})))")
        known = text.constant(f"K_{plan.name}", repr(frozenset(i.tag for i in plan.tagged)))
        with text.block(f"if {local}._unknown_tags:"):
            text.line(f"if not {known}.isdisjoint({local}._unknown_tags): raise FastPathMiss")
            text.line(f"w(tagged_section({tags}, {local}._unknown_tags))")
        text.line(f"elif {tags}: w(tagged_section({tags}, {local}._unknown_tags))")
        text.line("else: w(b'\\0')")

    def differs(self, item: FieldPlan, value: str) -> str:
        """Return the condition under which a field differs from its default."""
        if item.default is None:
            return f"{value} is not None"
        if isinstance(item.default, NewStruct):
            assert item.struct is not None
            return f"{value} != {class_name(item.struct)}()"
        if item.default == ():
            return f"{value} is None or len({value})"
        if item.kind == "uuid":
            default = self.text.constant(f"D_{item.name}", f"UUID({str(item.default)!r})")
            return f"{value} != {default}"
        if isinstance(item.default, float):
            return f"{value} != float({str(item.default)!r})"
        return f"{value} != {item.default!r}"

    def field(self, item: FieldPlan, value: str) -> None:
        text = self.text
        if item.kind == "bool":
            # pack accepts anything for a bool, including None.
            local = text.name(item.name)
            text.line(f"{local} = {value}")
            text.line(f"if {local} is not True and {local} is not False: raise FastPathMiss")
            self.later("?", local)
        elif item.format is not None:
            self.later(item.format, value)
        elif item.kind == "array":
            self.array(item, value)
        elif item.kind == "struct":
            self.struct_field(item, value)
        else:
            self.scalar(item.kind, item, item.nullable, value)

    def scalar(self, kind: str, item: FieldPlan, nullable: bool, value: str) -> None:
        """Write a uuid, a string or bytes: a field, or an element of an array."""
        text = self.text
        if kind == "uuid":
            self.flush()
            self.begin()
            text.line(self.write(f"{value}.bytes"))
            return
        if kind != "string" and self.in_parts:
            self.buffers(item, nullable, value)
            return
        raw, size, pending = text.name("raw"), text.name("n"), self.take()
        convert = ".encode()" if kind == "string" else ""
        # The length of a memoryview is not that of its bytes: interpreter handles everything but
        # bytes.
        check = "" if convert else f"if type({raw}) is not bytes: raise FastPathMiss"
        self.begin()
        if not nullable:
            text.line(f"{raw} = {value}{convert}; {size} = len({raw})")
            if check:
                text.line(check)
            self.length(item, size, pending, body=raw)
            return
        text.line(f"{raw} = {value}")
        text.line(f"if {raw} is None: {self.write(self.null(item, pending))}")
        with text.block("else:"):
            if check:
                text.line(check)
            text.line(f"{raw} = {raw}{convert}; {size} = len({raw})")
            self.length(item, size, pending, body=raw)

    def buffers(self, item: FieldPlan, nullable: bool, value: str) -> None:
        """Write a length, then bytes or the buffers of a tuple as parts of their own."""
        text = self.text
        held, size, pending = text.name("held"), text.name("n"), self.take()
        if nullable:
            text.line(f"if {value} is None: {self.write(self.null(item, pending))}")
            with text.block("else:"):
                self.length_of_buffers(item, held, size, value, pending)
        else:
            self.length_of_buffers(item, held, size, value, pending)

    def length_of_buffers(
        self, item: FieldPlan, held: str, size: str, value: str, pending: tuple[str, str]
    ) -> None:
        self.text.line(f"{held}, {size} = buffers({value})")
        self.length(item, size, pending)
        self.text.line(f"for each in {held}: w(each)")

    def struct_field(self, item: FieldPlan, value: str) -> None:
        assert item.struct is not None
        text = self.text
        local = text.name("o")
        if not item.nullable:
            text.line(f"{local} = {value}")
            self.struct(item.struct, local)
            return
        pending = self.take()
        text.line(f"{local} = {value}")
        text.line(f"if {local} is None: {self.write(self.null(item, pending))}")
        with text.block("else:"):
            self.pending = [(pending[0], pending[1])] if pending[0] else []
            self.later("B", str(item.markers[1]))
            self.struct(item.struct, local)
            self.flush()

    def array(self, item: FieldPlan, value: str) -> None:
        text = self.text
        local, pending = text.name(item.name), self.take()
        self.begin()
        text.line(f"{local} = {value}")
        if item.nullable:
            text.line(f"if {local} is None: {self.write(self.null(item, pending))}")
            with text.block("else:"):
                self.elements(item, local, pending)
                self.flush()
        else:
            self.elements(item, local, pending)

    def elements(self, item: FieldPlan, local: str, pending: tuple[str, str]) -> None:
        text = self.text
        size = text.name("n")
        text.line(f"{size} = len({local})")
        if item.element_format is not None and item.element_kind != "bool":
            self.numbers(item, local, size, pending)
            return
        # A str is a sequence of str: only a list is accepted here, and interpreter handles the
        # rest.
        text.line(f"if type({local}) is not list: raise FastPathMiss")
        self.length(item, size, pending)
        element = text.name("e")
        shape = shape_of(item.struct) if item.struct is not None else None
        if shape is not None and text.depth <= MAX_DEPTH:
            self.shaped_loop(shape, local, element)
            return
        with text.block(f"for {element} in {local}:"):
            if item.element_kind == "struct":
                assert item.struct is not None
                self.struct(item.struct, element)
            elif item.element_kind == "bool":
                text.line(
                    f"if {element} is not True and {element} is not False: raise FastPathMiss"
                )
                self.later("?", element)
            else:
                assert item.element_kind is not None
                self.scalar(item.element_kind, item, False, element)
            self.flush()

    def shaped_loop(self, shape: Shape, local: str, element: str) -> None:
        """Write structs of numbers and arrays of numbers, each with one pack made for its shape.
        The pack is looked up only when the shape changes. A function handles what the pack cannot
        write."""
        text, plan = self.text, shape.plan
        self.shapes[plan.name] = shape
        table = text.constant(f"S_{plan.name}", f"tables[{plan.name!r}]")
        pack = text.name("pack")
        arrays = {item.name: text.name(item.name) for item in plan.inline if item.kind == "array"}
        sizes = {name: text.name("n") for name in arrays}
        new_sizes = {name: text.name("m") for name in arrays}
        arguments: list[str] = []
        checks = [f"{pack} is None", f"{element}._unknown_tags"]
        for item in plan.absent:
            if not item.ignorable:
                checks.append(self.differs(item, f"{element}.{item.name}"))
        for item in plan.inline:
            value = f"{element}.{item.name}"
            if item.kind == "bool":
                checks.append(f"({value} is not True and {value} is not False)")
            if item.name in arrays:
                size = sizes[item.name]
                arguments += [f"{size} + 1" if item.compact else size, f"*{arrays[item.name]}"]
            else:
                arguments.append(value)
        if plan.flexible:
            arguments.append("0")
        text.line(f"{' = '.join(sizes.values())} = -1")
        with text.block(f"for {element} in {local}:"):
            for item in plan.inline:
                if item.name in arrays:
                    array, size = arrays[item.name], new_sizes[item.name]
                    null = f" if {array} is not None else {NULL_SIZE}" if item.nullable else ""
                    text.line(f"{array} = {element}.{item.name}; {size} = len({array}){null}")
            changed = " or ".join(f"{new_sizes[name]} != {sizes[name]}" for name in arrays)
            with text.block(f"if {changed}:"):
                keep = "; ".join(f"{sizes[name]} = {new_sizes[name]}" for name in arrays)
                text.line(f"{keep}; {pack} = {table}[{', '.join(sizes.values())}]")
            general = f"{self.split_function(plan)}({element}, w)"
            text.line(f"if {' or '.join(checks)}: {general}")
            text.line(f"else: w({pack}({', '.join(arguments)}))")

    def numbers(self, item: FieldPlan, local: str, size: str, pending: tuple[str, str]) -> None:
        """Write an array of numbers, its count and the pending numbers with one pack of a prebuilt
        table."""
        text = self.text
        letters, arguments = pending
        letter = item.element_format
        assert letter is not None
        count = "B" if item.compact else "i"
        plus = " + 1" if item.compact else ""
        table = text.constant(
            f"Q_{letters}{count}_{letter}", f"packers({letters + count!r}, {letter!r})"
        )
        lead = f"{arguments}, " if arguments else ""
        branch = "if"
        if not letters:
            empty = b"\x01" if item.compact else bytes(4)
            text.line(f"if not {size} and type({local}) is list: {self.write(repr(empty))}")
            branch = "elif"
        short = f"{table}[{size}]({lead}{size}{plus}, *{local})"
        text.line(f"{branch} {size} < 127: {self.write(short)}")
        before = f"{self.pack(letters, arguments)} + " if letters else ""
        head = f"compact({size})" if item.compact else self.pack("i", size)
        long = f"{before}{head} + pack('>%d{letter}' % {size}, *{local})"
        text.line(f"else: {self.write(long)}")


def _concatenation(slots: list[str]) -> str:
    """Return an expression that concatenates ``parts``. Up to three are added and more are joined,
    since each addition copies the bytes before it."""
    if len(slots) > 3:
        return f"return b''.join(({', '.join(slots)}))"
    return f"return {' + '.join(slots) or repr(b'')}"
