"""Make message classes at run time, for schemas without a committed module.

Such schemas are a user's drafts and those in ``schemas/kip_*``. The classes equal what
``codegen.modules`` would generate.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from kproto.codec.message import Message, RequestMessage
from kproto.codec.structs import MessageStruct
from kproto.schema.model import Field, MessageSchema, NewStruct, Struct

__all__ = ["make_message_class"]

_PYTHON_TYPES: dict[str, Any] = {
    "bool": bool, "float64": float, "string": str, "bytes": bytes, "records": bytes,
    "uuid": uuid.UUID,
}  # fmt: skip


def make_message_class(schema: MessageSchema, *, module: str = "kproto.drafts") -> type[Message]:
    """Return the class of a message; its nested structs are in ``STRUCTS``."""
    made: dict[str, type[MessageStruct]] = {}
    for struct in schema.structs:
        if struct is not schema.root:
            made[struct.name] = _define(struct, MessageStruct, made, module, {})
    namespace: dict[str, Any] = {
        "__doc__": schema.about or f"{schema.name}, versions {schema.valid_versions}.",
        "MESSAGE_NAME": schema.name,
        "MESSAGE_TYPE": schema.type,
        "API_KEY": schema.api_key,
        "VALID_VERSIONS": schema.valid_versions,
        "FLEXIBLE_VERSIONS": schema.flexible_versions,
        "STRUCTS": dict(made),
        "_SCHEMA": schema,
    }
    base = RequestMessage if schema.type == "request" else Message
    root = _define(schema.root, base, made, module, namespace)
    assert issubclass(root, Message)
    return root


def _define(
    struct: Struct,
    base: type[MessageStruct],
    made: dict[str, type[MessageStruct]],
    module: str,
    namespace: dict[str, Any],
) -> type[MessageStruct]:
    fields = [
        (item.python_name, _annotation(item, made), _default(item, made)) for item in struct.fields
    ]
    defined = msgspec.defstruct(
        struct.name,
        fields,
        bases=(base,),
        namespace=namespace,
        module=module,
        kw_only=True,
        gc=False,
    )
    assert issubclass(defined, MessageStruct)
    return defined


def _annotation(item: Field, made: dict[str, type[MessageStruct]]) -> Any:
    inner = item.type.inner_struct
    kind = item.type.element.kind if item.type.element is not None else item.type.kind
    python_type: Any = made[inner.name] if inner is not None else _PYTHON_TYPES.get(kind, int)
    if item.type.element is not None:
        python_type = list[python_type]
    return python_type | None if item.nullable_versions or item.default is None else python_type


def _default(item: Field, made: dict[str, type[MessageStruct]]) -> Any:
    if item.default == ():
        return msgspec.field(default_factory=list)
    if isinstance(item.default, NewStruct):
        inner = item.type.inner_struct
        assert inner is not None
        return msgspec.field(default_factory=made[inner.name])
    return item.default
