"""``kproto.deprecation``: renamed names stay importable and warn."""

from __future__ import annotations

import ast
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.deprecation import deprecated_names
from kproto.errors import DecodeError

ROOT = Path(__file__).parents[1]


@pytest.fixture
def renamed() -> Iterator[types.ModuleType]:
    module = types.ModuleType("renamed_for_a_test")
    names = {"OldError": "kproto.errors:DecodeError"}
    module.__getattr__ = deprecated_names(module.__name__, names)  # type: ignore[method-assign]
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def test_the_old_name_is_the_new_object_and_warns_at_the_call_site(
    renamed: types.ModuleType,
) -> None:
    with pytest.warns(DeprecationWarning, match=r"use kproto\.errors\.DecodeError") as warned:
        assert renamed.OldError is DecodeError
    assert warned[0].filename == __file__


def test_importing_the_old_name_warns_too(renamed: types.ModuleType) -> None:
    with pytest.warns(DeprecationWarning, match=r"renamed_for_a_test\.OldError is deprecated"):
        exec("from renamed_for_a_test import OldError", {})


def test_other_names_stay_unknown(renamed: types.ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        renamed.Missing  # noqa: B018


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("kproto.hexview", "Hidden", "Redaction"),
        ("kproto.journal", "Decoded", "DecodedEntry"),
        ("kproto.partial", "Partial", "PartialBody"),
        ("kproto.transcript", "Beginning", "TranscriptHeader"),
        ("kproto.transcript", "Connected", "TranscriptConnection"),
        ("kproto.transcript", "Ending", "TranscriptTrailer"),
        ("kproto.transcript", "Said", "TranscriptMessage"),
    ],
)
def test_renamed_names_of_kproto(module: str, old: str, new: str) -> None:
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"use {module}.{new}"):
        assert getattr(found, old) is getattr(found, new)


@pytest.mark.slow
def test_the_documentation_lists_every_deprecated_name() -> None:
    page = (ROOT / "docs/reference/deprecations.md").read_text()
    found = 0
    for package in ("kproto", "mockbroker", "wiredump", "kspec"):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text())):
                if not (
                    isinstance(node, ast.Call) and ast.unparse(node.func) == "deprecated_names"
                ):
                    continue
                found += 1
                if isinstance(node.args[1], ast.Dict):
                    for old, new in ast.literal_eval(node.args[1]).items():
                        assert f"| `{module}.{old}` | `{new.replace(':', '.')}` |" in page
                else:  # a whole module
                    assert f"| `{module}` |" in page
    assert found > 4
