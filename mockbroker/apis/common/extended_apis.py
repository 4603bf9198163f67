"""Handlers of released messages for drafts that extend them by versions and fields.

A draft that keeps every field of the released messages keeps the handler: it gets the request as
the newest released version that is not newer, without the draft's fields, and these have their
defaults in the response.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any

import msgspec
from msgspec.structs import replace

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.dialects import Api
from kproto.schema.model import FieldType, Struct
from kproto.schema.versions import Versions
from mockbroker.apis.calls import Answer, Call
from mockbroker.apis.registry import Handler

__all__ = ["extended"]


def extended(handler: Handler, draft: Api, released: Api) -> Handler | None:
    """Return the handler for the messages of a draft; None if the draft lacks a field of the
    released messages, or has it with another type."""
    if not (_keeps(draft.request, released.request) and _keeps(draft.response, released.response)):
        return None
    newest = handler.versions.intersect(released.valid_versions).highest

    def answer(call: Call) -> Answer:
        body = msgspec.convert(call.body, released.request, from_attributes=True)
        version = min(call.version, newest)
        inner = replace(call, api=released, version=version, body=body, takes_parts=False)
        response = handler.answer(inner)
        call.draws_controller = inner.draws_controller
        if isinstance(response, Message):
            return _converted(response, draft.response)
        return _later(response, draft.response)

    versions = Versions(handler.versions.lowest, draft.valid_versions.highest)
    return Handler(handler.api_key, versions, answer, handler.cacheable, handler.requires)


async def _later(response: Awaitable[Any], cls: type[Message]) -> Message:
    found: Any = response
    while inspect.isawaitable(found):
        # The handler of a suspended call may itself wait for the cluster.
        found = await found
    return _converted(found, cls)


def _converted(response: Message, cls: type[Message]) -> Message:
    converted: Message = msgspec.convert(response, cls, from_attributes=True)
    return converted


def _keeps(draft: type[Message], released: type[Message]) -> bool:
    return _has_fields(schema_of(draft).root, schema_of(released).root)


def _has_fields(draft: Struct, released: Struct) -> bool:
    own = {field.name: field for field in draft.fields}
    return all(
        field.name in own and _is_same(own[field.name].type, field.type)
        for field in released.fields
    )


def _is_same(draft: FieldType | None, released: FieldType | None) -> bool:
    if draft is None or released is None:
        return draft is released
    if draft.kind != released.kind or not _is_same(draft.element, released.element):
        return False
    if draft.struct is None or released.struct is None:
        return draft.struct is released.struct
    return _has_fields(draft.struct, released.struct)
