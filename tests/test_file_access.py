"""Only listed modules open files with ``open`` or ``os.open``.

The import contract ``files`` in pyproject.toml covers pathlib, io and the like.
A contract cannot forbid these two functions.
"""

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

ALLOWED = (
    "kproto.outputs.*",
    "kspec.clientfuzz.process_usage",  # lists /proc
    "kspec.runner.*",
    "wiredump.readers.capture",
    "wiredump.spark.*",
    "wiredump.storage.*",
    "wiredump.tables.processes",  # lists /proc
    "wiredump.tables.publishing",  # locks the folder of a run
)
"""Modules that may open files with these functions."""

OPENERS = {"open", "fdopen", "pread", "listdir", "scandir"}


def modules_that_open() -> Iterator[str]:
    for package in ("kproto", "mockbroker", "wiredump", "kspec"):
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if any(opens(node) for node in ast.walk(tree)):
                yield ".".join(path.relative_to(ROOT).with_suffix("").parts)


def opens(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="open")):
            return True
        case ast.Attribute(value=ast.Name(id="os"), attr=name):
            return name in OPENERS
        case ast.ImportFrom(module="os", names=names):
            return any(each.name in OPENERS for each in names)
    return False


@pytest.mark.slow
def test_files_are_opened_only_where_allowed() -> None:
    found = list(modules_that_open())
    outside = [name for name in found if not any(fnmatchcase(name, each) for each in ALLOWED)]
    assert outside == []
    unused = [each for each in ALLOWED if not any(fnmatchcase(name, each) for name in found)]
    assert unused == [], "remove stale names from ALLOWED"
