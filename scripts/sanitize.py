"""Build the C extensions with AddressSanitizer and UndefinedBehaviorSanitizer, and run their tests.

    make sanitize                                        # tests/native and the agreement
    .venv/bin/python -m scripts.sanitize tests/native -k damaged
    .venv/bin/python -m scripts.sanitize --seconds 60    # and then random inputs for a while

The sources are copied aside (``.cache/sanitize``), so that the engine in the checkout stays what it
was. Python's own allocator is switched off: each object is a block that the sanitizer watches, and
tests that count blocks have nothing to count. It needs gcc (or ``CC``) with its sanitizers'
libraries, and Linux. The first finding ends the run, with a stack; exit 1 then, 2 where the tools
are missing.
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
    "kproto", "wiredump", "kspec", "schemas", "scripts", "tests", "benchmarks", "demo", "docs",
    "pyproject.toml",
]  # fmt: skip
TESTS = [
    "tests/native", "tests/codegen/test_hostile.py", "tests/reference/test_agreement.py",
    "tests/records/test_hostile.py", "tests/records/test_build.py", "tests/records/test_columns.py",
    "tests/columns/test_differential.py", "tests/columns/test_read.py",
    "tests/wiredump/test_quick.py", "tests/wiredump/test_lives.py",
    "tests/wiredump/spark/test_runs.py",
    "tests/wiredump/rows/test_field_walks.py", "tests/wiredump/rows/test_gathering.py",
    "tests/wiredump/tables/test_records_only.py", "tests/wiredump/tables/test_merging.py",
]  # fmt: skip
FLAGS = [
    "-shared", "-fPIC", "-O1", "-g", "-fno-omit-frame-pointer", "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
    # C11 and nothing of this compiler's own: Visual Studio has to take it too.
    "-std=c11", "-Wpedantic", "-Wvla",
    "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
]  # fmt: skip
NOT_COUNTING = "not counts_memory"
LIBRARIES = ["libasan.so", "libubsan.so"]


class MissingTool(Exception):
    """What sanitizing needs and this machine lacks."""


def compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC", "gcc"))
    if shutil.which(command[0]) is None:
        raise MissingTool(f"no {command[0]}: install gcc, or name a compiler in CC")
    return command


def libraries() -> list[str]:
    """The sanitizers' run-time libraries; they have to be loaded before Python is."""
    found = []
    for name in LIBRARIES:
        asked = [*compiler(), f"-print-file-name={name}"]
        path = subprocess.check_output(asked, text=True).strip()
        if not Path(path).is_absolute():
            raise MissingTool(f"no {name}: the compiler has no sanitizers")
        found.append(str(Path(path).resolve()))
    return found


def build() -> None:
    """A copy of what the tests need, with an engine under sanitizers in it."""
    shutil.rmtree(PLACE, ignore_errors=True)
    ignore = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "node_modules", "target")
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
        # What CPython keeps until it ends is no leak of ours: tests/native/test_memory.py counts.
        "ASAN_OPTIONS": "detect_leaks=0,abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1,halt_on_error=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(PLACE),
        "PYTHONDONTWRITEBYTECODE": "1",
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
        print("sanitize: the engine that ran is not the one built here", file=sys.stderr)
        return 1
    # A file's tests, too: most of the work is in two files, and none of them shares what it set up.
    shared = ["-n", "auto", "--maxprocesses", "4", "--dist", "worksteal"]
    quietly = ["-q", "-p", "no:cacheprovider", "-m", NOT_COUNTING]
    if python("-m", "pytest", *quietly, *shared, *(tests or TESTS)):
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
