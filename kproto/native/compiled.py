"""Plans compiled for the C engine, of messages whose classes allow it.

Importing this raises ImportError where the extension is not built. ``compile_plan`` makes a
``Plan`` of a (message, version); its ``decode``, ``encode`` and ``validate`` take what the
generated Python takes and give what it gives; ``select`` is for ``kproto.columns``. Whatever
the engine cannot read or write it hands to ``kproto.codec.interpreter``, so values, errors, offsets
and paths are the same by construction.

How objects are made, and what the collector sees of them: ``decode.c``. What runs no Python code,
and why that matters: ``encode.c``. A free-threaded CPython turns its GIL on when this is imported.
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
from kproto.native.describe import Refused, describe

__all__ = ["Plan", "Refused", "compile_plan", "enter_in_c", "use_uuid_slots"]

if INTERFACE != 2:
    raise ImportError("the extension was built from the sources of another version")


def use_uuid_slots(assemble: bool) -> bool:
    """Whether UUIDs are put together in C (where this interpreter's are what C knows them to be),
    or made by Python's constructor. Returns what holds from now on, for every plan."""
    struct_meta = type(msgspec.Struct)
    return set_up(NO_TAGS, uuid.UUID, uuid.SafeUUID.unknown, make_uuid, struct_meta, assemble)


def compile_plan(
    plan: MessagePlan,
    classes: Mapping[str, type[MessageStruct]],
    explain_decode: Callable[[bytes, int], tuple[Any, int]],
    explain_encode: Callable[[Any], bytes],
) -> Plan:
    """The plan as the engine runs it; ``explain_*`` are asked whenever it gives up.

    Raises Refused where a class has more to it than its fields, or the plan more than the engine
    knows.
    """
    rows = describe(plan, classes)
    try:
        return Plan(rows, explain_decode, explain_encode)
    except (ValueError, TypeError, AttributeError) as error:
        raise Refused(str(error)) from None


def enter_in_c() -> None:
    """Give ``Message`` its methods in C. They go to the ones of Python for whatever is unusual, so
    they may stay whichever engine codecs are made by. A second call changes nothing."""
    methods = {name: Message.__dict__[name] for name in ("decode", "encode", "validate")}
    functions = [getattr(method, "__func__", method) for method in methods.values()]
    if all(isinstance(function, FunctionType) for function in functions):
        for name, method in methods_of(Message, *functions).items():
            type.__setattr__(Message, name, method)


use_uuid_slots(True)
