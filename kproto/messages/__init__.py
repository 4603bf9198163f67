"""Every message of the released protocol, one module each, imported when first asked for.

``from kproto.messages import MetadataRequest`` loads that module alone. Structs whose name only
one message uses are exported too; for the rest, import from the message's own module.
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
