"""Keep renamed public names importable for one release, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["deprecated_names"]


def deprecated_names(module_name: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module ``__getattr__`` that forwards old names to new ones.

    ``names`` maps each old name to ``"module:attribute"``. The new module is imported when the old
    name is first used. ::

        __getattr__ = deprecated_names(__name__, {"Old": "package.module:New"})
    """

    def __getattr__(name: str) -> Any:
        target = names.get(name)
        if target is None:
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
        module, _, attribute = target.partition(":")
        warnings.warn(
            f"{module_name}.{name} is deprecated and will be removed in the next release; "
            f"use {module}.{attribute}",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(module), attribute)

    return __getattr__
