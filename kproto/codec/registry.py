"""Make and keep the encoder, decoder and validator of each (message class, version).

If a native engine is registered (``use_native``), it compiles the plan. Messages that the engine
does not support, and all messages without an engine, get generated Python. A lock ensures that two
threads never compile the same codec twice. Generated source is registered with ``linecache``, so
debuggers and tracebacks show it.
"""

from __future__ import annotations

import linecache
import struct
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, overload

from kproto.codec import interpreter, runtime
from kproto.codec.shape_tables import BodyTable, PackTable, RunReader
from kproto.codec.structs import MessageStruct, RootStruct
from kproto.codegen.emit_decode import decoder_text
from kproto.codegen.emit_encode import encoder_text
from kproto.codegen.names import class_name
from kproto.codegen.plan import MessagePlan, build_plan
from kproto.errors import DecodeError
from kproto.schema.load import load_message, parse_message, read_schema_texts, schemas_directory
from kproto.schema.model import MessageSchema

__all__ = [
    "CompiledPlan",
    "CompiledPrinter",
    "CompiledSelection",
    "GeneratedDecoder",
    "Native",
    "compiled_plan",
    "decoder",
    "encoder",
    "generated_decoder",
    "generated_encoder",
    "parts_encoder",
    "plan_of",
    "read_schemas",
    "reader",
    "schema_of",
    "source_of",
    "structs_of",
    "trailing_bytes",
    "use_native",
    "validator",
]

Encoder = Callable[[Any], bytes]
PartsEncoder = Callable[[Any], list[Any]]
Decoder = Callable[[bytes, int], tuple[Any, int]]
Reader = Callable[[bytes], Any]
Validator = Callable[[bytes, int], int]


class GeneratedDecoder(Protocol):
    """A generated decoder: a ``Decoder``, and without the offset a ``Reader``."""

    @overload
    def __call__(self, data: bytes, /) -> Any: ...
    @overload
    def __call__(self, data: bytes, offset: int, /) -> tuple[Any, int]: ...


class CompiledSelection(Protocol):
    """Fields of a message at one version that become columns (``kproto.columns``). ``export`` makes
    the capsules of Arrow's PyCapsule interface; it is None where only pyarrow can export."""

    @property
    def export(self) -> Callable[[tuple[Any, ...]], tuple[object, object]] | None: ...

    def read(self, bodies: tuple[Any, ...], limit: int, collect: bool, /) -> Any: ...


class LocatingSelection(CompiledSelection, Protocol):
    """The same, which can also find its fields in a frame (``kproto.columns.places``)."""

    def locate(self, data: bytes, offset: int, header: Any, /) -> tuple[bytes, int] | None: ...


class CompiledPrinter(Protocol):
    """A message at one version that is printed as JSON (``kproto.codec.json_text``)."""

    def print(
        self, data: bytes, offset: int, /
    ) -> tuple[str, int, tuple[int, ...], int | None] | None: ...


class CompiledPlan(Protocol):
    """A message at one version, compiled by another engine. It calls ``interpreter`` itself."""

    def decode(self, data: Any, offset: int = 0, /) -> tuple[Any, int]: ...
    def encode(self, message: Any, /) -> bytes: ...
    def validate(self, data: Any, offset: int = 0, /) -> int: ...
    def select(self, levels: tuple[Any, ...], count: int, /) -> LocatingSelection: ...
    def printer(self, structs: tuple[Any, ...], longest: int, /) -> CompiledPrinter: ...


class Native(NamedTuple):
    """A native engine. ``compile_plan`` takes a plan, the classes by name, and the functions to
    call on failure; it raises ``unsupported`` for a message that the engine cannot handle."""

    compile_plan: Callable[
        [MessagePlan, Mapping[str, type[MessageStruct]], Decoder, Encoder], CompiledPlan
    ]
    unsupported: type[Exception]


_lock = threading.RLock()
_schemas: dict[str, MessageSchema] = {}
_texts: dict[str, str] = {}
"""Texts that were read ahead of their use, by message name."""
_all_read = False
_plans: dict[tuple[type[RootStruct], int], MessagePlan] = {}
_native: Native | None = None
_compiled: dict[tuple[type[RootStruct], int], CompiledPlan | None] = {}


def trailing_bytes(data: bytes, end: int) -> DecodeError:
    return DecodeError(f"bytes left over after the message: {len(data) - end}", offset=end)


_GLOBALS: dict[str, Any] = {
    **{name: getattr(runtime, name) for name in runtime.__all__},
    "Struct": struct.Struct,
    "UUID": uuid.UUID,
    "pack": struct.pack,
    "trailing_bytes": trailing_bytes,
}


def schema_of(cls: type[RootStruct]) -> MessageSchema:
    """Return the schema of a class. Raises SchemaError if the schema file is damaged."""
    if cls._SCHEMA is not None:
        return cls._SCHEMA
    name = cls.MESSAGE_NAME
    schema = _schemas.get(name)
    if schema is None:
        path = schemas_directory() / "kafka" / f"{name}.json"
        text = _texts.get(name)
        schema = load_message(path) if text is None else parse_message(text, str(path))
        _schemas[name] = schema
        _texts.pop(name, None)
    return schema


def read_schemas() -> None:
    """Read the texts of all released schemas, which takes some milliseconds once. Codecs that are
    made later open no file. Raises SchemaError."""
    global _all_read
    with _lock:
        if not _all_read:
            texts = read_schema_texts(schemas_directory() / "kafka")
            _texts.update((name, text) for name, text in texts.items() if name not in _schemas)
            _all_read = True


def plan_of(cls: type[RootStruct], version: int) -> MessagePlan:
    """Return the plan of a message at a version. Raises UnsupportedVersionError if there is no such
    version."""
    key = cls, version
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = build_plan(schema_of(cls), version)
    return plan


def structs_of(cls: type[RootStruct]) -> Mapping[str, type[MessageStruct]]:
    """Return all classes of a message by schema name, ``cls`` included."""
    return {**cls.STRUCTS, cls.MESSAGE_NAME: cls}


def use_native(native: Native | None) -> Native | None:
    """Set the engine for codecs made from now on; None selects generated Python. Returns the
    previous engine. Codecs that classes already hold do not change."""
    global _native
    with _lock:
        before, _native = _native, native
        _compiled.clear()
        return before


def encoder(cls: type[RootStruct], version: int) -> Encoder:
    """Return the function that encodes a body of ``cls`` at ``version``."""
    with _lock:
        made = cls._ENCODERS.get(version)
        if made is None:
            compiled = compiled_plan(cls, version)
            made = compiled.encode if compiled else generated_encoder(cls, version)
            cls._ENCODERS[version] = made
        return made


def decoder(cls: type[RootStruct], version: int) -> Decoder:
    """Return the function ``(data, offset) -> (message, end)`` that decodes a body of ``cls``."""
    with _lock:
        made = cls._DECODERS.get(version)
        if made is None:
            compiled = compiled_plan(cls, version)
            made = compiled.decode if compiled else generated_decoder(cls, version)
            cls._DECODERS[version] = made
        return made


def reader(cls: type[RootStruct], version: int) -> Reader:
    """Return the function ``data -> message`` that decodes a body of ``cls`` which fills
    ``data``."""
    with _lock:
        made = cls._READERS.get(version)
        if made is None:
            decode: Any = decoder(cls, version)
            made = _fills(decode) if compiled_plan(cls, version) else decode
            cls._READERS[version] = made
        return made


def _fills(decode: Decoder) -> Reader:
    def read(data: bytes) -> Any:
        message, end = decode(data, 0)
        if end != len(data):
            raise trailing_bytes(data, end)
        return message

    return read


def validator(cls: type[RootStruct], version: int) -> Validator:
    """Return the function ``(data, offset) -> end`` that checks a body without making a message."""
    with _lock:
        compiled = compiled_plan(cls, version)
        if compiled is not None:
            return compiled.validate
        decode = decoder(cls, version)
        return lambda data, offset: decode(data, offset)[1]


def generated_encoder(cls: type[RootStruct], version: int) -> Encoder:
    """Make an encoder in Python, whichever engine is in use."""
    made: Encoder = _generated(cls, version, in_parts=False)
    return made


def parts_encoder(cls: type[RootStruct], version: int) -> PartsEncoder:
    """Return the function that encodes a body of ``cls`` as a list of buffers. It is generated
    Python with either engine: what it saves is the copies of large fields."""
    with _lock:
        made = cls._PARTS_ENCODERS.get(version)
        if made is None:
            made = cls._PARTS_ENCODERS[version] = _generated(cls, version, in_parts=True)
        return made


def _generated(cls: type[RootStruct], version: int, *, in_parts: bool) -> Any:
    plan, structs = plan_of(cls, version), structs_of(cls)
    text = encoder_text(plan, in_parts=in_parts)
    namespace = _namespace(plan, structs, _explain_encode(plan, structs))
    namespace["tables"] = {name: PackTable(shape) for name, shape in text.shapes.items()}
    name = f"encode {plan.message} v{plan.version}{' in parts' if in_parts else ''}"
    return _compile(name, text.source, text.constants, namespace)


def generated_decoder(cls: type[RootStruct], version: int) -> GeneratedDecoder:
    """Make a decoder in Python, whichever engine is in use."""
    plan, structs = plan_of(cls, version), structs_of(cls)
    text = decoder_text(plan)
    namespace = _namespace(plan, structs, _explain_decode(plan, structs))
    namespace["runs"] = {name: RunReader(shape, namespace) for name, shape in text.shapes.items()}
    namespace["bodies"] = BodyTable(plan.root)
    name = f"decode {plan.message} v{plan.version}"
    made: GeneratedDecoder = _compile(name, text.source, text.constants, namespace)
    return made


def compiled_plan(cls: type[RootStruct], version: int) -> CompiledPlan | None:
    """Return a message compiled by the native engine, or None if there is no engine or it does not
    support the message."""
    if _native is None:
        return None
    key = cls, version
    if key not in _compiled:
        plan, structs = plan_of(cls, version), structs_of(cls)
        explained = _explain_decode(plan, structs), _explain_encode(plan, structs)
        try:
            _compiled[key] = _native.compile_plan(plan, structs, *explained)
        except _native.unsupported:
            _compiled[key] = None
    return _compiled[key]


def source_of(cls: type[RootStruct], version: int) -> str:
    """Return the generated source of the decoder and the encoder."""
    plan = plan_of(cls, version)
    decode, encode = decoder_text(plan), encoder_text(plan)
    names = {**decode.constants, **encode.constants}
    lines = [f"{name} = {expression}" for name, expression in sorted(names.items())]
    head = f"# {plan.message} v{plan.version}\n"
    return head + "\n".join([*lines, "", decode.source, "", encode.source, ""])


def _explain_encode(plan: MessagePlan, structs: Mapping[str, type[MessageStruct]]) -> Encoder:
    def explain(value: MessageStruct) -> bytes:
        return interpreter.encode(plan.root, structs, value)

    return explain


def _explain_decode(plan: MessagePlan, structs: Mapping[str, type[MessageStruct]]) -> Any:
    def decode(data: bytes, offset: int) -> tuple[Any, int]:
        return interpreter.decode(plan.root, structs, data, offset)

    whole = _fills(decode)

    def explain(data: bytes, offset: int | None = None) -> Any:
        return whole(data) if offset is None else decode(data, offset)

    return explain


def _namespace(
    plan: MessagePlan, structs: Mapping[str, type[MessageStruct]], explain: Callable[..., Any]
) -> dict[str, Any]:
    classes = {class_name(item): structs[item.name] for item in plan.structs}
    return {**_GLOBALS, **classes, "explain": explain}


def _compile(
    title: str, source: str, constants: Mapping[str, str], namespace: dict[str, Any]
) -> Any:
    file = f"<kproto {title}>"
    for name, expression in constants.items():
        if name not in namespace:
            namespace[name] = eval(expression, namespace)
    lines = source.splitlines(keepends=True)
    linecache.cache[file] = len(source), None, lines, file
    exec(compile(source, file, "exec"), namespace)
    return namespace[title.partition(" ")[0]]
