"""docs/explanation/security.md is true of the code: its tests exist, and so do its defaults."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from click import Option
from msgspec.structs import asdict

from mockbroker.cli.serve import serve
from mockbroker.control import connection_limits
from mockbroker.serving import limits, listeners

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/explanation/security.md").read_text()


def test_every_test_it_names_is_there():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 30
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text())
        tests = {
            each.name
            for each in tree.body
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in tests, f"{file}::{name}"


def test_every_limit_is_told_with_its_default_and_its_option():
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| `(--[\w-]+)` \| (\d+) \|", PAGE, re.M)
    assert {name: int(default) for name, _, default in rows} == asdict(limits.DEFAULTS)
    options = {word for each in serve.params if isinstance(each, Option) for word in each.opts}
    assert {option for _, option, _ in rows} <= options


def test_the_others_are_as_told():
    assert limits.MAX_BEFORE_SASL == 512 * 1024
    assert listeners.TLS_HANDSHAKE_SECONDS == 10
    assert (
        connection_limits.MOST_CONNECTIONS,
        connection_limits.QUIET_SECONDS,
        connection_limits.BODY_SECONDS,
    ) == (
        512, 60, 10,
    )  # fmt: skip
