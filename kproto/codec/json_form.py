"""Convert messages to and from JSON as Kafka's JsonConverter classes do.

A uuid is URL-safe base64 without padding, bytes are padded base64, tagged fields at their default
and fields that the version lacks are left out, and unknown tags have no JSON. There are deliberate
differences: records are padded base64 (Kafka's converter writes an empty string or only their
size), a key that the schema does not define is an error instead of being ignored, and numbers that
are not finite and the names that older releases had for a field are accepted.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
import uuid
from collections.abc import Mapping
from typing import Any, TypeVar

from kproto.codec.interpreter import fresh_default, is_default
from kproto.codec.json_writer import fast_writer
from kproto.codec.registry import plan_of, structs_of
from kproto.codec.structs import MessageStruct, RootStruct
from kproto.codegen.plan import FORMATS, FieldPlan, StructPlan
from kproto.errors import EncodeError, JsonError, UnsupportedVersionError

__all__ = ["StructWriter", "dumps", "from_value", "to_value"]

Classes = Mapping[str, type[MessageStruct]]
R = TypeVar("R", bound=RootStruct)


def dumps(message: RootStruct, version: int) -> str:
    return json.dumps(to_value(message, version), ensure_ascii=False, separators=(",", ":"))


def to_value(message: RootStruct, version: int) -> dict[str, Any]:
    """Return ``message`` as a JSON object. Raises EncodeError or UnsupportedVersionError as
    ``encode`` would."""
    cls = type(message)
    write = fast_writer(cls, version)
    try:
        return write(message)
    except Exception:  # StructWriter raises the exact error
        return StructWriter(structs_of(cls)).struct(plan_of(cls, version).root, message, "")


def from_value(
    cls: type[R], data: str | bytes | Mapping[str, Any], version: int, *, fill: bool = False
) -> R:
    """Make a message from JSON. With ``fill``, fields that are missing have their defaults. Raises
    JsonError with the path of the wrong field, or UnsupportedVersionError for a value at a version
    that lacks its field."""
    if isinstance(data, str | bytes | bytearray):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError) as error:
            at = error.pos if isinstance(error, json.JSONDecodeError) else 0
            raise JsonError(f"not JSON: {error}", offset=at) from None
    reader = _Reader(cls.MESSAGE_NAME, version, structs_of(cls), fill=fill)
    made = reader.struct(plan_of(cls, version).root, data, "")
    assert isinstance(made, cls)
    return made


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unsupported(item: FieldPlan, version: int) -> UnsupportedVersionError:
    return UnsupportedVersionError(
        f"Attempted to write a non-default {item.json_name} at version {version}"
    )


class StructWriter:
    """Converts structs to JSON values and raises the exact error for those that cannot be
    encoded."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes

    def struct(self, plan: StructPlan, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, self.classes[plan.name]):
            expected = self.classes[plan.name].__name__
            raise EncodeError(f"expected {expected}, got {type(value).__name__}", path=path)
        out: dict[str, Any] = {}
        for item in plan.order:
            current = getattr(value, item.name)
            if item in plan.absent:
                if not item.ignorable and not is_default(item, current, self.classes):
                    raise _unsupported(item, plan.version)
            elif self.is_written(item, current):
                out[item.json_name] = self.field(item, current, _join(path, item.name))
        return out

    def is_written(self, item: FieldPlan, value: Any) -> bool:
        """Whether a field of the version appears in the JSON. A tagged field at its default does
        not."""
        return item.tag is None or not is_default(item, value, self.classes)

    def field(self, item: FieldPlan, value: Any, path: str) -> Any:
        if value is None:
            if not item.nullable:
                raise EncodeError("is None, but not nullable at this version", path=path)
            return None
        if item.kind != "array":
            return self.value(item.kind, item, value, path)
        assert item.element_kind is not None
        return [
            self.value(item.element_kind, item, element, f"{path}[{index}]")
            for index, element in enumerate(value)
        ]

    def value(self, kind: str, item: FieldPlan, value: Any, path: str) -> Any:
        if kind == "struct":
            assert item.struct is not None
            return self.struct(item.struct, value, path)
        if kind == "uuid":
            return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
        if kind == "bytes":
            return base64.b64encode(value).decode()
        if kind == "float64" and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value


class _Reader:
    def __init__(self, message: str, version: int, classes: Classes, *, fill: bool) -> None:
        self.fill = fill
        self.message = message
        self.version = version
        self.classes = classes

    def struct(self, plan: StructPlan, data: Any, path: str) -> MessageStruct:
        if not isinstance(data, Mapping):
            raise JsonError(f"expected an object, got {_type(data)}", path=path)
        if not plan.exists:
            raise UnsupportedVersionError(f"Can't read version {self.version} of {plan.name}")
        names = _names_used(plan, data, path)
        values: dict[str, Any] = {}
        for item in plan.order:
            name = names.get(item.json_name)
            item_path = _join(path, name or item.json_name)
            if name is None:
                if item.tag is None and item not in plan.absent and not self.fill:
                    raise JsonError(
                        f"{plan.name}: unable to locate field '{item.json_name}', which is "
                        f"mandatory in version {self.version}",
                        path=item_path,
                    )
                continue
            value = self.field(item, data[name], item_path, item in plan.absent)
            if item in plan.absent and not item.ignorable:
                if not is_default(item, value, self.classes):
                    raise _unsupported(item, self.version)
                value = fresh_default(item, self.classes)
            values[item.name] = value
        return self.classes[plan.name](**values)

    def field(self, item: FieldPlan, data: Any, path: str, absent: bool) -> Any:
        if data is None:
            if not item.nullable and not (absent and item.default is None):
                raise JsonError("is null, but not nullable", path=path)
            return None
        if item.kind != "array":
            return self.value(item.kind, item, data, path)
        if not isinstance(data, list):
            raise JsonError(f"expected an array, got {_type(data)}", path=path)
        assert item.element_kind is not None
        return [
            self.value(item.element_kind, item, element, f"{path}[{index}]")
            for index, element in enumerate(data)
        ]

    def value(self, kind: str, item: FieldPlan, data: Any, path: str) -> Any:
        if kind == "struct":
            assert item.struct is not None
            return self.struct(item.struct, data, path)
        if kind == "bool":
            good = isinstance(data, bool)
        elif kind == "float64":
            return self.float(data, path)
        elif kind in FORMATS:
            good = type(data) is int and _in_range(kind, data)
        else:
            good = isinstance(data, str)
        if not good:
            raise JsonError(f"{data!r:.60} is not {kind}", path=path)
        if kind in ("uuid", "bytes"):
            return self.binary(kind, data, path)
        return data

    def float(self, data: Any, path: str) -> float:
        named = data in ("NaN", "Infinity", "-Infinity")
        if not named and (isinstance(data, bool) or not isinstance(data, int | float)):
            raise JsonError(f"{data!r:.60} is not float64", path=path)
        try:
            return float(data)
        except OverflowError:
            raise JsonError(f"{data!r:.60} is not float64", path=path) from None

    def binary(self, kind: str, data: str, path: str) -> Any:
        try:
            if kind == "bytes":
                return base64.b64decode(data, validate=True)
            raw = base64.b64decode(data + "=" * (-len(data) % 4), altchars=b"-_", validate=True)
            return uuid.UUID(bytes=raw)
        except (binascii.Error, ValueError):
            form = "padded base64" if kind == "bytes" else "16 bytes in URL-safe base64"
            raise JsonError(f"{data!r:.60} is not {form}", path=path) from None


def _names_used(plan: StructPlan, data: Mapping[str, Any], path: str) -> dict[str, str]:
    """Map each field to its key in ``data``: its name, or a name that an older release had for
    it."""
    known = {item.json_name: item.json_name for item in plan.order}
    for item in plan.order:
        for alias in item.json_aliases:
            known.setdefault(alias, item.json_name)
    used: dict[str, str] = {}
    for key in data:
        name = known.get(key)
        if name is None:
            fields = ", ".join(sorted(item.json_name for item in plan.order))
            problem = f"{plan.name} has no field {key!r}; its fields are {fields}"
            raise JsonError(problem, path=path)
        if name in used:
            problem = f"{plan.name} has {name!r} twice, as {used[name]!r} and {key!r}"
            raise JsonError(problem, path=path)
        used[name] = key
    return used


def _in_range(kind: str, value: int) -> bool:
    try:
        struct.pack(f">{FORMATS[kind]}", value)
    except struct.error:
        return False
    return True


def _type(data: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if data is None else names.get(type(data), "a number")
