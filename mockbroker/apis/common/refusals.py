"""Responses that carry only an error: its places, and what is repeated of the request, are found
from the schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct
from mockbroker.apis.calls import Call
from mockbroker.apis.common.error_places import Place, chosen_places, place_error, places_of
from mockbroker.apis.common.error_skeleton import ErrorSkeleton
from mockbroker.apis.common.request_entities import Selection, fields_of, kind_of

__all__ = ["Extent", "error_response", "refusal"]

Extent: TypeAlias = Literal["outermost", "everywhere"]
"""How much of a response an error fills. ``outermost``: the error at the top; if the version has
none there, that of each element that answers one of the request. ``everywhere``: both, and the
topics and partitions of the request are repeated even if they have no error of their own."""

_ERROR_CODE = "ErrorCode"


def refusal(
    call: Call,
    code: int,
    text: str | None = None,
    *,
    extent: Extent = "outermost",
    merges: bool = False,
) -> Message:
    """Return the response to a request that is not carried out.

    ``merges``: elements that answer equal ones of the request are one, and those without partitions
    disappear. If the request names all topics or partitions, none is repeated.
    """
    response, version = call.api.response, call.version
    is_everywhere = extent == "everywhere"
    places = chosen_places(response, version, "all" if is_everywhere else None, Selection())
    repeated = _repeated(response, version) if is_everywhere else places
    body = ErrorSkeleton(call.body, version, {}, is_exact=True).answer(response, version, repeated)
    if merges:
        _merge(body, schema_of(response).root, version)
    place_error(body, version, places, code, text, {})
    return body


def error_response(response: type[Message], version: int, error_code: int) -> Message | None:
    """Return a response with ``error_code`` in its error field and defaults in all others.

    The field is the top-level ErrorCode, or else the first nested one, in one element of each array
    that leads to it. None if the version has no error code.
    """
    place = next((p for p in places_of(response, version) if p.code.name == _ERROR_CODE), None)
    if place is None:
        return None
    body = response()
    holder: Any = body
    for array in place.path:
        inner = array.type.inner_struct
        assert inner is not None
        element = response.STRUCTS[inner.name]()
        setattr(holder, array.python_name, [element])
        holder = element
    setattr(holder, place.code.python_name, error_code)
    return body


@cache
def _repeated(response: type[Message], version: int) -> tuple[Place, ...]:
    """Return the places, and as such the arrays of topics and partitions that have no error."""
    arrays = _named_arrays(schema_of(response).root, version, ())
    found = [Place(path, path[-1], "element") for path in arrays]
    return (*places_of(response, version), *found)


def _named_arrays(
    struct: Struct, version: int, path: tuple[Field, ...]
) -> Iterator[tuple[Field, ...]]:
    for field in fields_of(struct, version):
        inner = field.type.inner_struct
        if (
            field.type.kind == "array"
            and inner is not None
            and kind_of(inner, version) != "element"
        ):
            yield (*path, field)
            yield from _named_arrays(inner, version, (*path, field))


def _merge(holder: Any, struct: Struct, version: int) -> bool:
    """Return whether the holder has something left: elements, or no arrays at all."""
    kept = []
    for field in fields_of(struct, version):
        inner = field.type.inner_struct
        if field.type.kind == "array" and inner is not None:
            elements = _merged(getattr(holder, field.python_name), inner, version)
            elements = [each for each in elements if _merge(each, inner, version)]
            setattr(holder, field.python_name, elements)
            kept.append(bool(elements))
    return not kept or any(kept)


def _merged(elements: Sequence[Any], struct: Struct, version: int) -> list[Any]:
    """Return the elements that differ in more than their arrays, each with those of its equals."""
    fields = list(fields_of(struct, version))
    arrays = [field.python_name for field in fields if field.type.kind == "array"]
    values = [field.python_name for field in fields if field.type.kind != "array"]
    found: dict[tuple[Any, ...], Any] = {}
    for element in elements:
        first = found.setdefault(tuple(getattr(element, name) for name in values), element)
        if first is not element:
            for name in arrays:
                setattr(first, name, getattr(first, name) + getattr(element, name))
    return list(found.values())
