"""Compile plans for the C engine, for messages whose classes allow it.

Importing this module raises ImportError if the extension is not built. ``compile_plan`` makes a
``Plan`` of a (message, version) whose ``decode``, ``encode`` and ``validate`` have the signatures
and results of the generated Python; ``select`` serves ``kproto.columns``. The engine passes
whatever it cannot read or write to ``kproto.codec.interpreter``, so values, errors, offsets and
paths are the same by construction.

``decode.c`` explains how objects are made and what the garbage collector sees of them; ``encode.c``
explains which parts run no Python code, and why that matters.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import msgspec

from kproto.codec.message import Message
from kproto.codec.runtime import make_uuid
from kproto.codec.structs import NO_TAGS, MessageStruct
from kproto.codegen.plan import MessagePlan
from kproto.native._engine import INTERFACE, Plan, methods_of, set_up
from kproto.native.describe import UnsupportedPlan, describe

__all__ = ["Plan", "UnsupportedPlan", "compile_plan", "enter_in_c", "use_uuid_slots"]

if INTERFACE != 8:
    raise ImportError("the extension was built from another version's sources")


def use_uuid_slots(assemble: bool) -> bool:
    """Whether UUIDs are assembled in C or made by Python's constructor. C needs an interpreter
    whose UUIDs have the expected layout. Returns the setting in effect, which applies to all
    plans."""
    struct_meta = type(msgspec.Struct)
    return set_up(NO_TAGS, uuid.UUID, uuid.SafeUUID.unknown, make_uuid, struct_meta, assemble)


def compile_plan(
    plan: MessagePlan,
    classes: Mapping[str, type[MessageStruct]],
    explain_decode: Callable[[bytes, int], tuple[Any, int]],
    explain_encode: Callable[[Any], bytes],
) -> Plan:
    """Compile a plan for the engine, which calls ``explain_*`` whenever it cannot proceed.

    Raises UnsupportedPlan if a class does more than hold its fields, or if the plan uses something
    that the engine does not support.
    """
    rows = describe(plan, classes)
    try:
        return Plan(rows, explain_decode, explain_encode)
    except (ValueError, TypeError, AttributeError) as error:
        raise UnsupportedPlan(str(error)) from None


def enter_in_c() -> None:
    """Replace the methods of ``Message`` by C methods. They call the Python methods for unusual
    arguments, so they may stay whichever engine is in use. A second call has no effect."""
    methods = {name: Message.__dict__[name] for name in ("decode", "encode", "validate")}
    functions = [getattr(method, "__func__", method) for method in methods.values()]
    if all(isinstance(function, FunctionType) for function in functions):
        for name, method in methods_of(Message, *functions).items():
            type.__setattr__(Message, name, method)


use_uuid_slots(True)
