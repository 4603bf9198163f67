"""Remembers what a graph of objects holds, and restores it in place.

The parts of a cluster refer to each other, also from closures, so that no copy could stand in for
them. Objects keep their identity instead: a snapshot lists every object that can be reached with
what it holds, and ``restore`` puts that back. Values that never change are shared.

Only objects of ``_OWN`` modules are followed. Whatever belongs to the event loop, a socket or a
schema is left alone, and so are the subscribers of a part, the lists that it calls ``on_...``: a
test that waits for a change goes on waiting.
"""

from __future__ import annotations

import random
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from functools import cache, partial
from types import CellType, FunctionType, MethodType
from typing import Any, Final

import msgspec

__all__ = ["Snapshot"]

_OWN: Final = (
    "mockbroker.simulation.",
    "mockbroker.faults.",
    "mockbroker.serving.pacing",
    "mockbroker.serving.scripts",
    "kproto.znodes",
)

_Restore = Callable[[], None]


class Snapshot:
    """What ``roots`` and everything that can be reached from them hold now.

    ``held`` has an entry for each mutable object: its id and what it holds. ``skipped`` are the
    types that were not followed.
    """

    def __init__(self, *roots: object) -> None:
        self.held: dict[int, object] = {}
        self.skipped: set[type] = set()
        self._restores: list[_Restore] = []
        self._seen: dict[int, object] = {}
        """By id; holding the objects keeps the ids from being used again."""
        stack: list[object] = list(roots)
        while stack:
            found = stack.pop()
            if type(found) in _ATOMS or id(found) in self._seen:
                continue
            self._seen[id(found)] = found
            stack += self._follow(found)

    def restore(self) -> None:
        """Let every object hold again what it held."""
        for restore in self._restores:
            restore()

    def _save(self, thing: object, content: object, restore: _Restore) -> None:
        self.held[id(thing)] = content
        self._restores.append(restore)

    def _follow(self, found: Any) -> Iterable[object]:
        """Save what an object holds, and return the objects in it."""
        if isinstance(found, tuple | frozenset):
            return found
        if isinstance(found, list | deque):
            content = tuple(found)
            self._save(found, content, partial(_refill_list, found, content))
            return content
        if isinstance(found, dict):
            items = dict(found)
            self._save(found, tuple(items.items()), partial(_refill, found, items))
            factory = found.default_factory if isinstance(found, defaultdict) else None
            return [*items, *items.values(), factory]
        if isinstance(found, set):
            members = frozenset(found)
            self._save(found, members, partial(_refill, found, members))
            return members
        if isinstance(found, bytearray | array):
            data = found[:]
            self._save(found, data, partial(found.__setitem__, slice(None), data))
            return ()
        if isinstance(found, random.Random):
            state = found.getstate()
            self._save(found, state, partial(found.setstate, state))
            return ()
        if isinstance(found, MethodType):
            return found.__self__, found.__func__
        if isinstance(found, partial):
            return found.func, found.args, found.keywords
        if isinstance(found, FunctionType):
            return found.__closure__ or () if _is_own(found.__module__) else ()
        if isinstance(found, CellType):
            try:
                value = found.cell_contents
            except ValueError:  # nothing was assigned yet
                return ()
            self._save(found, value, partial(setattr, found, "cell_contents", value))
            return (value,)
        return self._follow_attributes(found)

    def _follow_attributes(self, found: Any) -> Iterable[object]:
        own = type(found)
        if not _is_own(own.__module__):
            self.skipped.add(own)
            return ()
        names, frozen = _slots(own)  # type: ignore[arg-type]  # a class can be hashed
        unset = object()
        values = {
            name: value for name in names if (value := getattr(found, name, unset)) is not unset
        }
        attributes = getattr(found, "__dict__", None)
        kept = {} if attributes is None else dict(attributes)
        subscribers = [each for name, each in kept.items() if _is_subscription(name, each)]
        for each in subscribers:
            self._seen[id(each)] = each
        if not frozen:
            self._save(
                found, (*values.items(), *kept.items()), partial(_reset, found, values, names, kept)
            )
        inner = [each for many in subscribers for each in many]
        return [*values.values(), *kept.values(), *inner]


_ATOMS: Final = frozenset({int, str, bytes, float, bool, type(None), type})


def _is_own(module: str | None) -> bool:
    return module is not None and module.startswith(_OWN)


def _is_subscription(name: str, value: object) -> bool:
    return name.startswith("on_") and isinstance(value, list)


@cache
def _slots(own: type) -> tuple[tuple[str, ...], bool]:
    """The names of a class's attributes outside of ``__dict__``, and whether they never change."""
    if issubclass(own, msgspec.Struct):
        return own.__struct_fields__, own.__struct_config__.frozen
    names = (getattr(each, "__slots__", ()) for each in own.__mro__)
    flat = (name for each in names for name in ((each,) if isinstance(each, str) else each))
    return tuple(name for name in flat if name not in ("__dict__", "__weakref__")), False


def _refill_list(found: list[Any] | deque[Any], content: tuple[Any, ...]) -> None:
    found.clear()
    found.extend(content)


def _refill(found: Any, content: Any) -> None:
    found.clear()
    found.update(content)


def _reset(
    found: Any, values: dict[str, Any], names: tuple[str, ...], kept: dict[str, Any]
) -> None:
    assign = setattr if isinstance(found, msgspec.Struct) else object.__setattr__
    for name in names:
        if name in values:
            assign(found, name, values[name])  # also of a frozen dataclass
        elif hasattr(found, name):
            object.__delattr__(found, name)
    if kept or hasattr(found, "__dict__"):
        found.__dict__.clear()
        found.__dict__.update(kept)
