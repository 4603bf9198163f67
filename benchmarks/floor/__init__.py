"""The floor under decode: a message's objects cloned in C, with nothing parsed (``floor.c``).

Knows how that file is built into the cache, and which slots of a message hold what. Needs the
compiler that the engine needs; ``AbsentError`` says so where there is none.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from kproto.builds import built, run
from kproto.codec import registry
from kproto.codec.message import Message
from kproto.codec.structs import MessageStruct
from kproto.codegen.plan import FieldPlan, MessagePlan, StructPlan
from kproto.errors import AbsentError

__all__ = ["clone_of"]

M = TypeVar("M", bound=Message)

SOURCE = Path(__file__).resolve().parent / "floor.c"
FLAGS = ["-O3", "-DNDEBUG", "-fwrapv", "-fno-strict-aliasing", "-fvisibility=hidden"]
"""As the engine is built (setup.py), Python's own among them."""
WARNINGS = ["-Wall", "-Wextra", "-Wno-missing-field-initializers"]

ATOM, STRUCT, ATOMS, STRUCTS = range(4)

Slot = tuple[str, int, int]
"""Name, what it holds, index of the inner struct or -1."""


def clone_of(cls: type[Message], version: int) -> Callable[[M], M]:
    """What clones a decoded message of ``cls``: its structs and lists anew, the rest shared."""
    plan, structs = registry.plan_of(cls, version), registry.structs_of(cls)
    clone: Callable[[M], M] = _module().Floor(_rows(plan, structs)).clone
    return clone


def _rows(
    plan: MessagePlan, classes: Mapping[str, type[MessageStruct]]
) -> tuple[tuple[type, tuple[Slot, ...]], ...]:
    """Every struct of the plan, children first, as ``floor.c`` takes them."""
    index = {item: number for number, item in enumerate(plan.structs)}

    def slots(struct: StructPlan) -> tuple[Slot, ...]:
        tags: Slot = ("_unknown_tags", ATOM, -1)  # not through the property that makes them
        return (*(_slot(field, index) for field in struct.order), tags)

    return tuple((classes[item.name], slots(item)) for item in plan.structs)


def _slot(field: FieldPlan, index: Mapping[StructPlan, int]) -> Slot:
    inner = index[field.struct] if field.struct is not None else -1
    if field.kind == "array":
        return field.name, ATOMS if field.struct is None else STRUCTS, inner
    return field.name, ATOM if field.struct is None else STRUCT, inner


def _module() -> Any:
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        raise AbsentError(f"no {compiler[0]}: a C compiler builds the floor, as it does the engine")
    include = sysconfig.get_paths()["include"]
    name = f"floor{sysconfig.get_config_var('EXT_SUFFIX')}"

    def build(folder: Path) -> None:
        shared = ["-shared", "-fPIC", f"-I{include}", str(SOURCE), "-o", str(folder / name)]
        run([*compiler, *FLAGS, *WARNINGS, *shared], cwd=folder)

    made_of = [SOURCE.read_text(), " ".join([*compiler, *FLAGS]), include, sys.version]
    path = built("benchmarks/floor", made_of, build) / name
    loader = importlib.machinery.ExtensionFileLoader("floor", str(path))
    spec = importlib.util.spec_from_file_location("floor", path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
