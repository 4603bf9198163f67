"""Instrumentation, which must be in place before the code under test is imported.

For the guide ``python``, the modules under test get atheris' bytecode; functions made at run time
request it themselves (``instrumented``). For ``c``, the two extensions are those that
``fuzz.native.build`` made. Neither changes files of the packages.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

__all__ = ["guide_in_c", "guide_in_python", "instrumented", "is_in_c"]

F = TypeVar("F", bound=Callable[..., Any])

_atheris: ModuleType | None = None
_rebuilt: dict[str, Path] = {}


def instrumented(function: F) -> F:
    """Return the same function, instrumented if the guide instruments Python."""
    return function if _atheris is None else _atheris.instrument_func(function)


def guide_in_python(atheris: ModuleType, under_test: Sequence[str]) -> None:
    global _atheris
    _atheris = atheris
    sys.meta_path.insert(0, _Patched(tuple(under_test)))


def guide_in_c(extensions: Mapping[str, Path]) -> None:
    """``extensions`` maps full module names to files."""
    _rebuilt.update(extensions)
    sys.meta_path.insert(0, _Rebuilt())


def is_in_c() -> bool:
    """Return whether the guide only sees C, so that time spent in Python is lost."""
    return bool(_rebuilt)


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        assert _atheris is not None
        return None if code is None else _atheris.patch_code(code, True)


class _Patched(MetaPathFinder):
    def __init__(self, under_test: tuple[str, ...]) -> None:
        early = [name for name in sys.modules if _is_in(name, under_test)]
        assert not early, f"imported before the guide was in place: {early}"
        self._under_test = under_test

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not _is_in(fullname, self._under_test):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Rebuilt(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        file = _rebuilt.get(fullname)
        if file is None:
            return None
        loader = importlib.machinery.ExtensionFileLoader(fullname, str(file))
        return importlib.machinery.ModuleSpec(fullname, loader, origin=str(file))


def _is_in(name: str, under_test: Sequence[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in under_test)
