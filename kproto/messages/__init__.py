"""All messages of the released protocol, one module each, imported on first use.

``from kproto.messages import MetadataRequest`` loads that module only. Structs whose name is unique
are exported too; import the others from their message's own module.
"""

from __future__ import annotations

import importlib


def __getattr__(name: str) -> object:
    # The index names a thousand classes; a program that imports one module never reads it.
    from kproto.messages._index import ALIASES, AMBIGUOUS, MODULES

    if name == "__all__":
        return sorted([*MODULES, *ALIASES])
    if name in AMBIGUOUS:
        modules = ", ".join(f"kproto.messages.{module}" for module in AMBIGUOUS[name])
        raise ImportError(f"{name} is in several messages; import it from one of: {modules}")
    found = ALIASES.get(name, name)
    module = MODULES.get(found)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"kproto.messages.{module}"), found)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from kproto.messages._index import ALIASES, MODULES

    return sorted([*MODULES, *ALIASES])
