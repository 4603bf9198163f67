"""Skip tests whose toolchain is missing, or fail them where it is required.

``KPROTO_REQUIRE=all`` (CI) requires every toolchain except Rust and .NET; a comma-separated list
(``KPROTO_REQUIRE=java,maven``) requires those. ``kspec/runner/toolchains.py`` decides what is
installed.
"""

import importlib
import os
from types import ModuleType

import pytest

from kspec.runner import toolchains

__all__ = ["absent", "require", "require_module"]


BY_NAME_ONLY = frozenset({"rust", "dotnet"})
"""Toolchains that CI does not install and ``all`` excludes; ``all,rust`` requires Rust as well.

Confluent.Kafka, which .NET's recipe needs, is in no registry that tests use."""


def _is_required(name: str) -> bool:
    wanted = {part.strip() for part in os.environ.get("KPROTO_REQUIRE", "").split(",")}
    return name in wanted or ("all" in wanted and name not in BY_NAME_ONLY)


def absent(name: str, remedy: str) -> None:
    """Skip the calling test because ``name`` is missing; fail it if ``name`` is required."""
    text = f"{name} is absent: {remedy}"
    if _is_required(name):
        pytest.fail(f"{text} (KPROTO_REQUIRE={os.environ['KPROTO_REQUIRE']})", pytrace=False)
    pytest.skip(text)


def require(*names: str) -> None:
    """Skip the calling test, or fail it where required, unless all toolchains of ``names`` run.

    The names are those of ``kspec.runner.toolchains.TOOLCHAINS``: java, maven, node, npm, go,
    rust, tshark, chromium.
    """
    for name in names:
        if toolchains.find(name) is None:
            absent(name, toolchains.TOOLCHAINS[name].remedy)


def require_module(name: str) -> ModuleType:
    """Import a Python client or optional library; skip, or fail where required, without it.

    One that is installed and cannot be imported is an error.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        absent(name, "python3 scripts/bootstrap.py installs it where the registry has it")
        raise  # not reached: absent() never returns normally
