"""Convert valid messages to JSON values fast, with the result of ``json_form.StructWriter``.

Each struct's fields are looked up once and become a list of conversion steps. Paths are needed only
for errors, so this module does not track them. Any unexpected value raises an exception;
``StructWriter`` then converts the message again and raises the exact error, if there is one.
"""

from __future__ import annotations

import math
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from kproto.codec.interpreter import fresh_default
from kproto.codec.registry import plan_of, structs_of
from kproto.codec.runtime import FastPathMiss
from kproto.codec.structs import MessageStruct, RootStruct
from kproto.codegen.plan import FieldPlan, StructPlan

__all__ = ["fast_writer"]

Convert: TypeAlias = Callable[[Any], Any]


class _Step(NamedTuple):
    name: str
    json_name: str
    nullable: bool
    is_default: Convert | None
    """Returns whether the value is the default. Set for fields that are left out at their
    default."""
    convert: Convert | None
    """None where the value needs no conversion."""


@lru_cache(maxsize=1024)
def fast_writer(cls: type[RootStruct], version: int) -> Callable[[Any], dict[str, Any]]:
    """Return a function that converts messages of ``cls`` to JSON. Raises
    UnsupportedVersionError."""
    return _struct(plan_of(cls, version).root, structs_of(cls))


def _struct(
    plan: StructPlan, classes: Mapping[str, type[MessageStruct]]
) -> Callable[[Any], dict[str, Any]]:
    cls = classes[plan.name]
    steps = [_step(item, classes) for item in plan.order if item not in plan.absent]
    absent = [(item.name, _is_default(item, classes)) for item in plan.absent if not item.ignorable]

    def write(value: Any) -> dict[str, Any]:
        if type(value) is not cls:
            raise FastPathMiss
        for name, is_absent in absent:
            if not is_absent(getattr(value, name)):
                raise FastPathMiss
        out: dict[str, Any] = {}
        for name, json_name, nullable, is_default, convert in steps:
            current = getattr(value, name)
            if is_default is not None and is_default(current):
                continue
            if current is None:
                if not nullable:
                    raise FastPathMiss
                out[json_name] = None
            else:
                out[json_name] = current if convert is None else convert(current)
        return out

    return write


def _step(item: FieldPlan, classes: Mapping[str, type[MessageStruct]]) -> _Step:
    is_default = None if item.tag is None else _is_default(item, classes)
    return _Step(item.name, item.json_name, item.nullable, is_default, _convert(item, classes))


def _is_default(item: FieldPlan, classes: Mapping[str, type[MessageStruct]]) -> Convert:
    default = fresh_default(item, classes)  # no other code sees this object, so it is never changed
    if item.default is None:
        return lambda value: value is None
    if item.default == ():
        return lambda value: value is not None and not len(value)
    return lambda value: bool(value == default)


def _convert(item: FieldPlan, classes: Mapping[str, type[MessageStruct]]) -> Convert | None:
    if item.kind != "array":
        return _of_kind(item.kind, item, classes)
    assert item.element_kind is not None
    each = _of_kind(item.element_kind, item, classes)
    return list if each is None else lambda values: [each(value) for value in values]


def _of_kind(
    kind: str, item: FieldPlan, classes: Mapping[str, type[MessageStruct]]
) -> Convert | None:
    if kind == "struct":
        assert item.struct is not None
        return _struct(item.struct, classes)
    return _SCALARS.get(kind)


def _uuid(value: Any) -> str:
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def _bytes(value: Any) -> str:
    return b64encode(value).decode()


def _float(value: Any) -> Any:
    if not math.isfinite(value):
        raise FastPathMiss
    return value


_SCALARS: Final[Mapping[str, Convert]] = {"uuid": _uuid, "bytes": _bytes, "float64": _float}
