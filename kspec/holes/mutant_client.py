"""Import the reference client with a defect, beside the right one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType
from typing import Any, Final

import kspec
from kspec import reference_client
from kspec.holes.mutations import Mutation, lines_by_name, mutate, mutations
from kspec.reference_client.client import Client

__all__ = [
    "MODULES", "changed_client", "every_mutation", "mutant_client", "path_of", "places_by_name",
    "source_of",
]  # fmt: skip

_PACKAGE: Final = reference_client.__name__
_FOLDER: Final = Path(reference_client.__path__[0])
MODULES: Final = tuple(sorted(each.stem for each in _FOLDER.glob("[a-z]*.py")))
"""The modules of the reference client."""


def path_of(module: str) -> Path:
    return _FOLDER / f"{module}.py"


@cache
def source_of(module: str) -> str:
    """Return a module's source. It is read once, so that it may be edited during a search."""
    return path_of(module).read_text("utf-8")


@cache
def every_mutation() -> tuple[Mutation, ...]:
    """Return every defect that can be made of the reference client, by module and line."""
    return tuple(each for module in MODULES for each in mutations(source_of(module), module))


def places_by_name() -> Mapping[str, frozenset[tuple[str, int]]]:
    """Return the modules and lines that use each name or attribute."""
    found: dict[str, set[tuple[str, int]]] = {}
    for module in MODULES:
        for name, lines in lines_by_name(source_of(module)).items():
            found.setdefault(name, set()).update((module, line) for line in lines)
    return {name: frozenset(places) for name, places in found.items()}


def mutant_client(mutation: Mutation) -> type[Client]:
    """Return the client with that defect. Raises whatever the changed module raises when it is
    imported, such as a TypeError."""
    tree = mutate(source_of(mutation.module), mutation)
    code = compile(tree, str(path_of(mutation.module)), "exec")
    return changed_client({mutation.module: code})


def changed_client(
    codes: Mapping[str, CodeType], names: Mapping[str, Any] = MappingProxyType({})
) -> type[Client]:
    """Return the client with other code for some of its modules, which find ``names`` among their
    globals."""
    with _imported_anew(_Finder(codes, names)):
        client: type[Client] = import_module(f"{_PACKAGE}.client").Client
    return client


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType, names: Mapping[str, Any]) -> None:
        super().__init__(name, path)
        self._code, self._names = code, names

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(self._names)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the changed modules in place of their files."""

    def __init__(self, codes: Mapping[str, CodeType], names: Mapping[str, Any]) -> None:
        self._codes = {f"{_PACKAGE}.{module}": (module, code) for module, code in codes.items()}
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._codes:
            return None
        module, code = self._codes[fullname]
        file = path_of(module)
        loader = _Loader(fullname, str(file), code, self._names)
        return spec_from_file_location(fullname, file, loader=loader)


@contextmanager
def _imported_anew(finder: _Finder) -> Iterator[None]:
    """Import the package's modules once more, and leave the right ones in place."""
    right = {name: each for name, each in sys.modules.items() if _is_part(name)}
    for name in right:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [each for each in sys.modules if _is_part(each)]:
            del sys.modules[name]
        sys.modules |= right
        kspec.reference_client = reference_client


def _is_part(name: str) -> bool:
    return name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
