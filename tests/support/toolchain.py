"""Skip a test whose toolchain is absent, or fail it where nothing may be skipped.

``KPROTO_REQUIRE=all`` (CI) makes every absence a failure but that of Rust; a comma-separated list
(``KPROTO_REQUIRE=java,maven``) makes those failures. What counts as present is decided in
``kspec/runner/toolchains.py`` alone.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType

import pytest

from kspec.runner import toolchains

__all__ = ["absent", "require", "require_module"]


BY_NAME_ONLY = frozenset({"rust"})
"""What CI does not install, and ``all`` does not mean: ``KPROTO_REQUIRE=all,rust`` requires it."""


def _is_required(name: str) -> bool:
    wanted = {part.strip() for part in os.environ.get("KPROTO_REQUIRE", "").split(",")}
    return name in wanted or ("all" in wanted and name not in BY_NAME_ONLY)


def absent(name: str, remedy: str) -> None:
    """Skip the calling test because ``name`` is absent; fail it where ``name`` is required."""
    text = f"{name} is absent: {remedy}"
    if _is_required(name):
        pytest.fail(f"{text} (KPROTO_REQUIRE={os.environ['KPROTO_REQUIRE']})", pytrace=False)
    pytest.skip(text)


def require(*names: str) -> None:
    """Skip, or fail where required, unless every toolchain of ``names`` runs here.

    The names are those of ``kspec.runner.toolchains.TOOLCHAINS``: java, maven, node, npm, go,
    rust, tshark, chromium.
    """
    for name in names:
        if toolchains.find(name) is None:
            absent(name, toolchains.TOOLCHAINS[name].remedy)


def require_module(name: str) -> ModuleType:
    """Import a Python client or optional library, or skip (fail where required) without it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        absent(name, "python3 scripts/bootstrap.py installs it where the registry has it")
        raise  # not reached: absent() never returns normally
