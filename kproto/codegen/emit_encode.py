"""Plan -> the text of an encoder. No wire rule is decided here; see ``plan``.

Parts are appended to a list and joined once. A run of fixed-width fields, the length that follows
and the string or array after it are one ``pack`` call where they can be. What the fast path cannot
write (a null that is not allowed, a field the version lacks, a wrong type) raises something, upon
which ``interpret`` finds the error to show.
"""

from __future__ import annotations

from kproto.codegen.plan import FieldPlan, MessagePlan, StructPlan
from kproto.codegen.text import Text, class_name
from kproto.schema.model import NewStruct

__all__ = ["encoder_text"]

MAX_DEPTH = 12


def encoder_text(plan: MessagePlan) -> tuple[str, dict[str, str]]:
    """The source of ``encode(o)`` and the constants it uses."""
    emitter = _Emitter()
    body = emitter.function("encode", plan.root, whole=True)
    return "\n\n".join([*emitter.functions, body]), emitter.constants


class _Emitter:
    def __init__(self) -> None:
        self.constants: dict[str, str] = {}
        self.functions: list[str] = []
        self.split: dict[int, str] = {}
        self.text = Text(self.constants)
        self.pending: list[tuple[str, str]] = []

    def function(self, name: str, plan: StructPlan, *, whole: bool) -> str:
        """``encode(o)`` -> bytes when ``whole``, else ``encode_N(o, w)`` which appends parts."""
        outer = self.text, self.pending
        self.text, self.pending = Text(self.constants), []
        text = self.text
        if whole:
            with text.block(f"def {name}(o):"):
                with text.block("try:"):
                    text.line("parts = []; w = parts.append")
                    self.struct(plan, "o")
                    self.flush()
                    text.line("return b''.join(parts)")
                text.line("except Exception:")
                text.line("    return explain(o)")
        else:
            with text.block(f"def {name}(o, w):"):
                self.struct(plan, "o")
                self.flush()
        source = "\n".join(text.lines)
        self.text, self.pending = outer
        return source

    def split_function(self, plan: StructPlan) -> str:
        name = self.split.get(id(plan))
        if name is None:
            name = self.split[id(plan)] = f"encode_{len(self.split)}"
            self.functions.append(self.function(name, plan, whole=False))
        return name

    # -- output ------------------------------------------------------------------------------

    def write(self, letter: str, expression: str) -> None:
        """Write one number, together with its neighbours, at the next flush."""
        self.pending.append((letter, expression))

    def take(self) -> tuple[str, str]:
        """The pending run as format letters and argument list, both maybe empty."""
        letters = "".join(letter for letter, _ in self.pending)
        arguments = ", ".join(expression for _, expression in self.pending)
        self.pending = []
        return letters, arguments

    def pack(self, letters: str, arguments: str) -> str:
        name = self.text.constant(f"P_{letters}", f"Struct('>{letters}').pack")
        return f"{name}({arguments})"

    def flush(self) -> None:
        letters, arguments = self.take()
        if letters:
            self.text.line(f"w({self.pack(letters, arguments)})")

    def length(self, item: FieldPlan, count: str, *, is_string: bool, body: str = "") -> None:
        """Write the length held by local ``count``, after what is pending and before ``body``."""
        text = self.text
        letters, arguments = self.take()
        plus = f" + {body}" if body else ""
        lead = f"{arguments}, " if arguments else ""
        if not item.compact:
            letters += "h" if is_string else "i"
            text.line(f"w({self.pack(letters, lead + count)}{plus})")
            return
        short = self.pack(letters + "B", f"{lead}{count} + 1") if letters else f"compact({count})"
        before = f"{self.pack(letters, arguments)} + " if letters else ""
        long = f"{'string_length' if is_string else 'compact'}({count})"
        if letters:
            text.line(f"if {count} < 127: w({short}{plus})")
            text.line(f"else: w({before}{long}{plus})")
        else:
            text.line(f"if {count} < 127: w(ONE_BYTE[{count} + 1]{plus})")
            text.line(f"else: w({long}{plus})")

    # -- structs -----------------------------------------------------------------------------

    def struct(self, plan: StructPlan, local: str) -> None:
        text = self.text
        if text.depth > MAX_DEPTH:
            self.flush()
            text.line(f"{self.split_function(plan)}({local}, w)")
            return
        for item in plan.absent:
            if not item.ignorable:
                text.line(f"if {self.differs(item, f'{local}.{item.name}')}: raise Slow")
        for item in plan.inline:
            self.field(item, f"{local}.{item.name}")
        if not plan.flexible:
            text.line(f"if {local}._unknown_tags: raise Slow")
        elif plan.tagged:
            self.tagged_section(plan, local)
        else:
            letters, arguments = self.take()
            lead = f"{arguments}, " if arguments else ""
            zero = self.pack(letters + "B", lead + "0") if letters else "b'\\0'"
            before = f"{self.pack(letters, arguments)} + " if letters else ""
            text.line(
                f"if {local}._unknown_tags: "
                f"w({before}tagged_section([], {local}._unknown_tags))"
            )
            text.line(f"else: w({zero})")

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
            text.line(f"if not {known}.isdisjoint({local}._unknown_tags): raise Slow")
            text.line(f"w(tagged_section({tags}, {local}._unknown_tags))")
        text.line(f"elif {tags}: w(tagged_section({tags}, {local}._unknown_tags))")
        text.line("else: w(b'\\0')")

    def differs(self, item: FieldPlan, value: str) -> str:
        """The condition under which a field is not at its default."""
        if item.default is None:
            return f"{value} is not None"
        if isinstance(item.default, NewStruct):
            assert item.struct is not None
            return f"{value} != {class_name(item.struct)}()"
        if item.default == ():
            return f"{value} != []"
        if item.kind == "uuid":
            default = self.text.constant(f"D_{item.name}", f"UUID({str(item.default)!r})")
            return f"{value} != {default}"
        if isinstance(item.default, float):
            return f"{value} != float({str(item.default)!r})"
        return f"{value} != {item.default!r}"

    # -- fields ------------------------------------------------------------------------------

    def field(self, item: FieldPlan, value: str) -> None:
        text = self.text
        if item.kind == "bool":
            # pack would take anything for a bool, None as well
            local = text.name(item.name)
            text.line(f"{local} = {value}")
            text.line(f"if {local} is not True and {local} is not False: raise Slow")
            self.write("?", local)
        elif item.format is not None:
            self.write(item.format, value)
        elif item.kind == "array":
            self.array(item, value)
        elif item.kind == "struct":
            self.struct_field(item, value)
        else:
            self.scalar(item.kind, item, item.nullable, value)

    def scalar(self, kind: str, item: FieldPlan, nullable: bool, value: str) -> None:
        """A uuid, a string or bytes: a field, or one element of an array."""
        text = self.text
        if kind == "uuid":
            self.flush()
            text.line(f"w({value}.bytes)")
            return
        raw, size = text.name("raw"), text.name("n")
        if nullable:
            self.flush()
            text.line(f"{raw} = {value}")
            text.line(f"if {raw} is None: w({self.null(item)!r})")
            with text.block("else:"):
                if kind == "string":
                    text.line(f"{raw} = {raw}.encode()")
                text.line(f"{size} = len({raw})")
                self.length(item, size, is_string=kind == "string", body=raw)
            return
        text.line(f"{raw} = {value}{'.encode()' if kind == 'string' else ''}; {size} = len({raw})")
        self.length(item, size, is_string=kind == "string", body=raw)

    def null(self, item: FieldPlan) -> bytes:
        if item.kind == "struct":
            return bytes(item.markers[:1])
        if item.compact:
            return b"\x00"
        return b"\xff\xff" if item.kind == "string" else b"\xff\xff\xff\xff"

    def struct_field(self, item: FieldPlan, value: str) -> None:
        assert item.struct is not None
        text = self.text
        local = text.name("o")
        if not item.nullable:
            text.line(f"{local} = {value}")
            self.struct(item.struct, local)
            return
        self.flush()
        text.line(f"{local} = {value}")
        text.line(f"if {local} is None: w({self.null(item)!r})")
        with text.block("else:"):
            self.write("B", str(item.markers[1]))
            self.struct(item.struct, local)
            self.flush()

    # -- arrays ------------------------------------------------------------------------------

    def array(self, item: FieldPlan, value: str) -> None:
        text = self.text
        local = text.name(item.name)
        if item.nullable:
            self.flush()
            text.line(f"{local} = {value}")
            text.line(f"if {local} is None: w({self.null(item)!r})")
            with text.block("else:"):
                self.elements(item, local)
                self.flush()
        else:
            text.line(f"{local} = {value}")
            self.elements(item, local)

    def elements(self, item: FieldPlan, local: str) -> None:
        text = self.text
        size = text.name("n")
        text.line(f"{size} = len({local})")
        if item.element_format is not None and item.element_kind != "bool":
            self.numbers(item, local, size)
            return
        # A str is a sequence of str: only a list is taken here, interpret looks at the rest.
        text.line(f"if type({local}) is not list: raise Slow")
        self.length(item, size, is_string=False)
        element = text.name("e")
        with text.block(f"for {element} in {local}:"):
            if item.element_kind == "struct":
                assert item.struct is not None
                self.struct(item.struct, element)
            elif item.element_kind == "bool":
                text.line(f"if {element} is not True and {element} is not False: raise Slow")
                self.write("?", element)
            else:
                assert item.element_kind is not None
                self.scalar(item.element_kind, item, False, element)
            self.flush()

    def numbers(self, item: FieldPlan, local: str, size: str) -> None:
        """An array of numbers, its count and what is pending, in one pack of a prebuilt table."""
        text = self.text
        letters, arguments = self.take()
        letter = item.element_format
        assert letter is not None
        count = "B" if item.compact else "i"
        plus = " + 1" if item.compact else ""
        table = text.constant(
            f"Q_{letters}{count}_{letter}", f"packers({letters + count!r}, {letter!r})"
        )
        lead = f"{arguments}, " if arguments else ""
        if not letters:
            empty = b"\x01" if item.compact else bytes(4)
            text.line(f"if not {size} and type({local}) is list: w({empty!r})")
        branch = "if" if letters else "elif"
        text.line(f"{branch} {size} < 127: w({table}[{size}]({lead}{size}{plus}, *{local}))")
        before = f"{self.pack(letters, arguments)} + " if letters else ""
        head = f"compact({size})" if item.compact else self.pack("i", size)
        text.line(f"else: w({before}{head} + pack('>%d{letter}' % {size}, *{local}))")
