"""What a defect is, and how a class declares one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kspec.reference_client.client import Client

__all__ = ["DEFECTS", "Defect", "defect"]

T = TypeVar("T", bound=type)


@dataclass(frozen=True, slots=True)
class Defect:
    """``about`` states in one sentence which rule is broken, and ``client`` breaks it."""

    name: str
    about: str
    client: type[Client]


DEFECTS: Final[dict[str, Defect]] = {}


def defect(name: str) -> Callable[[T], T]:
    """Declare a ``Client`` with a defect, or a part, such as a ``Link`` or a ``Producer``, that an
    otherwise correct client uses.

    The first paragraph of the docstring is its description.
    """

    def declare(wrong: T) -> T:
        assert name not in DEFECTS, name
        about = " ".join((wrong.__doc__ or "").split("\n\n")[0].split())
        client = wrong if issubclass(wrong, Client) else _with_part(Client, wrong)
        assert client is not None, wrong
        client.name = f"wrong:{name}"
        DEFECTS[name] = Defect(name, about, client)
        return wrong

    return declare


def _with_part(whole: type, part: type) -> Any:
    """Return a subclass of ``whole`` that uses ``part``, or None if it has no such part.

    The part replaces the nearest of its bases: a transactional producer is a producer, too. Where
    none of the parts fits, each part that has it as a part of its own is replaced.
    """
    parts = {
        name: each
        for name in dir(whole)
        if not name.startswith("__") and isinstance(each := getattr(whole, name), type)
    }
    fitting = [name for name, each in parts.items() if issubclass(part, each)]
    if fitting:
        changes = {max(fitting, key=lambda name: len(parts[name].__mro__)): part}
    else:
        within = {name: _with_part(each, part) for name, each in parts.items()}
        changes = {name: each for name, each in within.items() if each is not None}
    return type(part.__name__, (whole,), changes) if changes else None
