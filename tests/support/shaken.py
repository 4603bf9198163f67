"""Message objects with a wrong value in a random place, as a caller may pass by mistake."""

import random
import uuid
from typing import Any, Final

import msgspec

__all__ = ["WRONG_VALUES", "shake"]


class _Text(str):
    """A subclass of str."""


WRONG_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 127, 128, 2**15, 2**16 - 1, 2**31, 2**32, -(2**31) - 1, 2**63,
    10**30, 0.0, -0.0, 1.5, float("nan"), "", "x", "\u00e9" * 16384, "y" * 32768, "\ud800",
    _Text("sub"), b"", b"raw", bytearray(b"more"), memoryview(b"most"), (), (1, 2), (b"x",), [],
    [None], [1, "2"], ["a", None], {}, {1: b"x"}, {-1: b""}, {2**31: b""}, {1: "text"},
    {0: b"zero"}, {"1": b"x"}, {True: b"x"}, uuid.UUID(int=0), uuid.UUID(int=7), object(),
)  # fmt: skip


def shake(message: Any, rng: random.Random, times: int = 1) -> Any:
    """A copy of ``message`` with ``times`` members, at any depth, set to a wrong value."""
    copied = _copy(message)
    for _ in range(times):
        owner, name = rng.choice(_places(copied, []))
        value = _copy(rng.choice(WRONG_VALUES))
        if isinstance(owner, list):
            owner[name] = value
        elif name != "unknown_tags" and rng.random() < 0.03:
            setattr(owner, name, None)  # it may be deleted already
            delattr(owner, name)
        else:
            setattr(owner, name, value)
    return copied


def _copy(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return type(value)(**{name: _copy(getattr(value, name)) for name in names})
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return dict(value) if isinstance(value, dict) else value


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            found.append((value, name))
            _places(getattr(value, name, None), found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found.append((value, index))
            _places(item, found)
    return found
