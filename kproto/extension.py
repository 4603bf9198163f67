"""The C extension in use, for packages beside ``kproto.native`` that have a part in it.

``kproto.native.choice`` sets it; ``kproto.records`` reads it on each use. This module imports
neither.
"""

from __future__ import annotations

from types import ModuleType

__all__ = ["in_use", "use"]

in_use: ModuleType | None = None
"""The module ``kproto.native._engine``, or None if everything runs in Python."""


def use(module: ModuleType | None) -> ModuleType | None:
    """Set the extension to use; None selects Python alone. Returns the previous one."""
    global in_use
    before, in_use = in_use, module
    return before
