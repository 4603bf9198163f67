"""The C extension in use, for packages that have a part in it and lie beside ``kproto.native``.

``kproto.native`` chooses and says so here; ``kproto.records`` looks here each time it reads or
writes. Knows neither of them.
"""

from __future__ import annotations

from types import ModuleType

__all__ = ["in_use", "use"]

in_use: ModuleType | None = None
"""The module ``kproto.native._engine``, or None: then everything runs in Python."""


def use(module: ModuleType | None) -> ModuleType | None:
    """The extension from now on, None for Python alone. Returns the one before."""
    global in_use
    before, in_use = in_use, module
    return before
