"""Build the C extensions with AddressSanitizer and UndefinedBehaviorSanitizer, and run their tests.

    make sanitize                                        # every test of TESTS
    .venv/bin/python -m scripts.sanitize tests/native -k damaged
    .venv/bin/python -m scripts.sanitize --seconds 60    # the tests, then random input for a minute

The sources are copied to ``.cache/sanitize``, so the checkout keeps its own build. Python's small
object allocator is switched off, so that the sanitizer watches each object as a block of its own;
tests that count the allocator's blocks and tests of the Python engine are left out. It needs Linux,
and gcc (or ``CC``) with its sanitizers' libraries. The first finding ends the run with a stack.
Exits with 1 on a finding or a failed test, with 2 if a tool is missing.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".cache" / "sanitize"
COPIED = [
    "kproto", "mockbroker", "wiredump", "kspec", "schemas", "scripts", "tests", "benchmarks",
    "demo", "docs", "pyproject.toml",
]  # fmt: skip
TESTS = [
    "tests/native", "tests/codegen/test_hostile.py", "tests/reference/test_agreement.py",
    "tests/records/test_hostile.py", "tests/records/test_build.py", "tests/records/test_columns.py",
    "tests/columns/test_differential.py", "tests/columns/test_read.py",
    "tests/mockbroker/proxy/test_frame_runs.py",
    "tests/wiredump/test_quick.py", "tests/wiredump/test_native_connections.py",
    "tests/wiredump/test_open_requests.py",
    "tests/wiredump/spark/test_runs.py",
    "tests/columns/test_places.py",
    "tests/wiredump/rows/test_fields.py", "tests/wiredump/rows/test_gathering.py",
    "tests/wiredump/tables/test_exchange_rows.py", "tests/wiredump/tables/test_held_rows.py",
    "tests/wiredump/tables/test_merging.py",
]  # fmt: skip
FLAGS = [
    "-shared", "-fPIC", "-O1", "-g", "-fno-omit-frame-pointer", "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
    # Plain C11, because Visual Studio compiles it, too.
    "-std=c11", "-Wpedantic", "-Wvla",
    "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
]  # fmt: skip
NOT_COUNTING = "not counts_memory"
WITHOUT_C = "tests/native/test_choice.py"
"""Starts interpreters, which takes long, to see which engine they choose."""
NOT_PURE = "not pure"
"""By name: a parameter ``pure`` stands for the Python engine, which runs nothing of C."""
LIBRARIES = ["libasan.so", "libubsan.so"]


class MissingTool(Exception):
    """A tool that sanitizing needs is missing."""


def compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC", "gcc"))
    if shutil.which(command[0]) is None:
        raise MissingTool(f"{command[0]} is missing: install gcc, or name a compiler in CC")
    return command


def libraries() -> list[str]:
    """The sanitizers' run-time libraries, which must be loaded before Python."""
    found = []
    for name in LIBRARIES:
        command = [*compiler(), f"-print-file-name={name}"]
        path = subprocess.check_output(command, text=True).strip()
        if not Path(path).is_absolute():
            raise MissingTool(f"{name} is missing: the compiler has no sanitizers")
        found.append(str(Path(path).resolve()))
    return found


def build() -> None:
    """Copy what the tests need, and build the extensions with sanitizers in the copy."""
    shutil.rmtree(PLACE, ignore_errors=True)
    # Bytecode is copied: it is valid there, and slow to make under sanitizers. Files that another
    # process is writing have one more suffix.
    ignore = shutil.ignore_patterns("*.so", "*.pyd", "*.pyc.*", "node_modules", "target")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, PLACE / name, ignore=ignore)
        else:
            shutil.copy(source, PLACE / name)
    include = f"-I{sysconfig.get_paths()['include']}"
    for native, name in (
        (PLACE / "kproto/native", "_engine"),
        (PLACE / "wiredump/native", "_quick"),
    ):
        module = native / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
        sources = sorted(str(path) for path in native.glob("*.c"))
        subprocess.run([*compiler(), *FLAGS, include, *sources, "-o", str(module)], check=True)


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries()),
        # CPython keeps objects until it exits. tests/native/test_memory.py looks for our leaks.
        "ASAN_OPTIONS": "detect_leaks=0,abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1,halt_on_error=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(PLACE),
        "PYTHONDONTWRITEBYTECODE": "",
        "KPROTO_ENGINE": "native",
    }


CHECK = (
    "import sys, kproto.native._engine as e, wiredump.native._quick as q; "
    "sys.exit(not all(each.__file__.startswith(sys.argv[1]) for each in (e, q)))"
)


def run(tests: list[str], seconds: float) -> int:
    build()
    settings = environment()

    def python(*arguments: str) -> int:
        return subprocess.call([sys.executable, *arguments], cwd=PLACE, env=settings)

    if python("-c", CHECK, str(PLACE)):
        print("sanitize: Python imported another build of the extensions", file=sys.stderr)
        return 1
    # One process: each more collects the tests and makes what they share, slowly, once again.
    quietly = ["-q", "-n0", "-p", "no:cacheprovider", "-m", NOT_COUNTING, "-k", NOT_PURE]
    if python("-m", "pytest", *quietly, *(tests or [*TESTS, f"--ignore={WITHOUT_C}"])):
        return 1
    for burn in ("tests.native.burn", "tests.native.burn_records") if seconds else ():
        if python("-m", burn, "--seconds", str(seconds)):
            return 1
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description="The C engine's tests under sanitizers.")
    parser.add_argument("--seconds", type=float, default=0, help="random inputs after the tests")
    arguments, tests = parser.parse_known_args()
    try:
        sys.exit(run(tests, arguments.seconds))
    except MissingTool as error:
        print(f"sanitize: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
