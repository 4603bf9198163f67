"""Which engine runs: what KPROTO_ENGINE asks, what was built, and what is said about it."""

import os
import subprocess
import sys

import pytest

from kproto.native.choice import GIL_IS_OFF, GIL_IS_ON
from tests.support import engines

ABSENT = "import sys; sys.modules['kproto.native._engine'] = None\n"
BROKEN = "import sys, types; sys.modules['kproto.native._engine'] = types.ModuleType('x')\n"
WHICH = "import kproto; print(kproto.engine, kproto.engine_note, sep='|')"
ROUND = (
    "from kproto.messages import HeartbeatRequest as H\n"
    "assert H.decode(H(group_id='g').encode(4), 4) == H(group_id='g')\n"
    "H.validate(H().encode(0), 0)\n"
)
VERSION = "from kproto.__main__ import cli; cli(['--version'])"
FREE_THREADED = """
import sys
sys.version = "3.14.0 free-threading build (main, Oct  7 2025) [GCC 13.3.0]"
sys._is_gil_enabled = lambda: {gil}
"""


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing is chosen in this process; and what is built is not always asked for."""


def run(code: str, wanted: str | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "KPROTO_ENGINE"}
    if wanted is not None:
        environment["KPROTO_ENGINE"] = wanted
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60
    )


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [None, "", "native"])
def test_native_where_it_is_built(wanted: str | None) -> None:
    engines.require_native()
    assert run(ROUND + WHICH, wanted).stdout == "native|\n"
    assert run(VERSION, wanted).stdout.endswith(" (native engine)\n")


@pytest.mark.slow
def test_pure_on_request() -> None:
    code = ROUND + WHICH + "\nimport sys; assert 'kproto.native._engine' not in sys.modules"
    assert run(code, "pure").stdout == "pure|KPROTO_ENGINE=pure\n"
    assert run(VERSION, "pure").stdout.endswith(" (pure engine): KPROTO_ENGINE=pure\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "why"),
    [
        (ABSENT, "the native engine was not built;"),
        (BROKEN, "the native engine cannot be loaded ("),
    ],
)
def test_without_it(start: str, why: str) -> None:
    done = run(start + ROUND + WHICH, None)
    assert done.stdout.startswith(f"pure|{why}")
    assert done.stdout.rstrip().endswith("make engine")
    said = run(start + VERSION, None).stdout
    assert why in said
    assert said.count("\n") == 1
    refused = run(start + WHICH, "native")
    assert refused.returncode == 1
    last = refused.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: KPROTO_ENGINE=native, but {why}")


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [None, "native"])
def test_a_free_threaded_interpreter_with_its_gil_on(wanted: str | None) -> None:
    """What loading the extension does to it, unless it was told to keep the GIL off."""
    engines.require_native()
    start = FREE_THREADED.format(gil=True)
    assert run(start + ROUND + WHICH, wanted).stdout == f"native|{GIL_IS_ON}\n"
    assert run(start + VERSION, wanted).stdout.endswith(f" (native engine): {GIL_IS_ON}\n")


@pytest.mark.slow
def test_a_free_threaded_interpreter_with_its_gil_off() -> None:
    engines.require_native()
    start = FREE_THREADED.format(gil=False)
    assert run(start + ROUND + WHICH, None).stdout == f"pure|{GIL_IS_OFF}\n"
    assert run(start + VERSION, None).stdout.endswith(f" (pure engine): {GIL_IS_OFF}\n")
    refused = run(start + WHICH, "native")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        f"ImportError: KPROTO_ENGINE=native, but {GIL_IS_OFF}"
    )


@pytest.mark.slow
def test_an_engine_that_is_none() -> None:
    refused = run(WHICH, "rust")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        "ImportError: KPROTO_ENGINE=rust: must be native, pure or unset"
    )
