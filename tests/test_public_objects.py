"""Every public object can be explored: its signature, its type hints and its documentation.

Public are the modules of the four packages that have ``__all__``, and what it lists.
"""

import builtins
import importlib
import inspect
import pkgutil
import pydoc
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any, get_type_hints

import pytest

import kproto

LAZY = {
    "kproto.cli": "commands import what they run",
    "kproto.client.zookeeper": "kazoo is an extra",
    "mockbroker.cli": "as kproto.cli",
    "mockbroker.options": "`mockbroker serve --help` imports no codec",
    "wiredump.cli": "as kproto.cli",
    "wiredump.connection_state": "a circle with wiredump.open_requests, for types alone",
    "wiredump.storage": "pyarrow is imported for URIs alone",
    "mockbroker.simulation.operations": "`mockbroker ctl` imports no cluster",
    "mockbroker.serving.suspended_calls": "greenlet is an extra",
    "mockbroker.pytest_plugin": "every pytest run imports the plugin",
    "mockbroker.faults.conflicts": "a circle with rule, for a type alone",
    "wiredump.readers.ledger": "a circle with stream, for a type alone",
    "wiredump.questions.database": "duckdb is an extra",
    "wiredump.redact": "imported without codecs",
    "wiredump.tables.table_rows": "imported without codecs",
    "wiredump.sources.captures": "most captures have no TLS",
    "wiredump.sources.native_connections": "the extension may be absent",
    "wiredump.spark": "pyspark is an extra, and slow to import",
    "wiredump.tls.session": "cryptography is an extra",
}
"""Modules that import names of their hints for type checkers alone, and why."""


def modules(package: str) -> Iterator[ModuleType]:
    top = importlib.import_module(package)
    yield top
    for info in pkgutil.walk_packages(top.__path__, f"{package}."):
        is_private = any(part.startswith("_") for part in info.name.split("."))
        if not is_private and (info.name != "kproto.native.compiled" or kproto.engine == "native"):
            yield importlib.import_module(info.name)


def problem(call: Callable[[Any], object], value: Any) -> str:
    try:
        call(value)
    except Exception as error:  # anything is a finding
        return f"{type(error).__name__}: {error}"
    return ""


def methods(cls: type) -> Iterator[Callable[..., Any]]:
    for name, value in vars(cls).items():
        method = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        is_made = name == "__init__" and is_dataclass(cls)
        if inspect.isfunction(method) and not is_made and method.__module__ == cls.__module__:
            yield method


def problems(value: Any) -> Iterator[str]:
    """What fails for one class or function."""
    found = problem(inspect.signature, value)
    if "no signature found for builtin" not in found:  # CPython: exceptions without __init__
        yield found
    if any(f"{value.__module__}.".startswith(f"{name}.") for name in LAZY):
        return
    yield problem(get_type_hints, value)
    if inspect.isclass(value):
        yield from (problem(get_type_hints, method) for method in methods(value))


@pytest.mark.slow
@pytest.mark.parametrize("package", ["kproto", "mockbroker", "wiredump", "kspec"])
def test_public_objects_can_be_explored(package: str) -> None:
    found: list[str] = []
    count = 0
    for module in modules(package):
        names = getattr(module, "__all__", None)
        if names is None:
            continue
        if module.__name__ != "kproto.messages":  # its own modules are rendered instead
            found.append(f"pydoc {module.__name__}: {problem(pydoc.render_doc, module)}")
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                count += 1
                where = f"{module.__name__}.{name}"
                found += [f"{where}: {each}" for each in problems(value)]
    assert count > 100
    assert [each for each in found if not each.endswith(": ")] == []


def test_the_documentation_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    """What `help(kproto.Message)` and `python -m pydoc` print."""
    builtins.help(kproto.Message)
    assert "encode(self, " in capsys.readouterr().out
    text = pydoc.plain(pydoc.render_doc("kproto.messages.heartbeat_request"))
    assert "class HeartbeatRequest(kproto.codec.message.RequestMessage)" in text
    assert "group_id: str = ''" in text
