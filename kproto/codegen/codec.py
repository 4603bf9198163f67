"""(message class, version) -> encoder and decoder: made from the plan at first use, then kept.

Making one is locked, so that two threads never compile the same text twice, and deterministic.
The source is registered with ``linecache``: debuggers and tracebacks show it.
"""

from __future__ import annotations

import linecache
import struct
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from kproto.codegen import interpret, runtime
from kproto.codegen.base import Message, MessageStruct
from kproto.codegen.emit_decode import decoder_text
from kproto.codegen.emit_encode import encoder_text
from kproto.codegen.names import class_name
from kproto.codegen.plan import MessagePlan, build_plan
from kproto.codegen.shapes import PackTable, RunReader
from kproto.errors import DecodeError
from kproto.schema.load import load_message, schemas_directory
from kproto.schema.model import MessageSchema

__all__ = [
    "decoder",
    "encoder",
    "plan_of",
    "schema_of",
    "source_of",
    "structs_of",
    "trailing_bytes",
]

Encoder = Callable[[Any], bytes]
Decoder = Callable[[bytes, int], tuple[Any, int]]

_lock = threading.RLock()
_schemas: dict[str, MessageSchema] = {}
_plans: dict[tuple[type[Message], int], MessagePlan] = {}

_GLOBALS: dict[str, Any] = {
    **{name: getattr(runtime, name) for name in runtime.__all__},
    "Struct": struct.Struct,
    "UUID": uuid.UUID,
    "pack": struct.pack,
}


def schema_of(cls: type[Message]) -> MessageSchema:
    """The schema a class was generated from. Raises SchemaError if its file is damaged."""
    if cls._SCHEMA is not None:
        return cls._SCHEMA
    name = cls.MESSAGE_NAME
    schema = _schemas.get(name)
    if schema is None:
        schema = _schemas[name] = load_message(schemas_directory() / "kafka" / f"{name}.json")
    return schema


def plan_of(cls: type[Message], version: int) -> MessagePlan:
    """Raises UnsupportedVersionError when the message has no such version."""
    key = cls, version
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = build_plan(schema_of(cls), version)
    return plan


def structs_of(cls: type[Message]) -> Mapping[str, type[MessageStruct]]:
    """Every class of a message by schema name, its own included."""
    return {**cls.STRUCTS, cls.MESSAGE_NAME: cls}


def encoder(cls: type[Message], version: int) -> Encoder:
    """The function that writes a body of ``cls`` at ``version``."""
    with _lock:
        made = cls._ENCODERS.get(version)
        if made is None:
            made = cls._ENCODERS[version] = _make_encoder(cls, plan_of(cls, version))
        return made


def decoder(cls: type[Message], version: int) -> Decoder:
    """The function ``(data, offset) -> (message, end)`` that reads a body of ``cls``."""
    with _lock:
        made = cls._DECODERS.get(version)
        if made is None:
            made = cls._DECODERS[version] = _make_decoder(cls, plan_of(cls, version))
        return made


def source_of(cls: type[Message], version: int) -> str:
    """The generated source of both, for people to read."""
    plan = plan_of(cls, version)
    decode, encode = decoder_text(plan), encoder_text(plan)
    names = {**decode.constants, **encode.constants}
    lines = [f"{name} = {expression}" for name, expression in sorted(names.items())]
    head = f"# {plan.message} v{plan.version}\n"
    return head + "\n".join([*lines, "", decode.source, "", encode.source, ""])


def trailing_bytes(data: bytes, end: int) -> DecodeError:
    return DecodeError(f"bytes left over after the message: {len(data) - end}", offset=end)


def _make_encoder(cls: type[Message], plan: MessagePlan) -> Encoder:
    structs = structs_of(cls)
    text = encoder_text(plan)

    def explain(value: MessageStruct) -> bytes:
        return interpret.encode(plan.root, structs, value)

    namespace = _namespace(plan, structs, explain)
    namespace["tables"] = {name: PackTable(shape) for name, shape in text.shapes.items()}
    name = f"encode {plan.message} v{plan.version}"
    made: Encoder = _compile(name, text.source, text.constants, namespace)
    return made


def _make_decoder(cls: type[Message], plan: MessagePlan) -> Decoder:
    structs = structs_of(cls)
    text = decoder_text(plan)

    def explain(data: bytes, offset: int) -> tuple[MessageStruct, int]:
        return interpret.decode(plan.root, structs, data, offset)

    namespace = _namespace(plan, structs, explain)
    namespace["runs"] = {name: RunReader(shape, namespace) for name, shape in text.shapes.items()}
    name = f"decode {plan.message} v{plan.version}"
    made: Decoder = _compile(name, text.source, text.constants, namespace)
    return made


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
