"""Build the driver and the two extensions with clang, into ``.cache/fuzz/native``.

Needs Linux and clang with compiler-rt (Debian: clang and the matching libclang-rt-dev). Files that
are newer than their sources are not rebuilt.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from fuzz.inputs import CACHE, ROOT

__all__ = ["DRIVER", "EXTENSIONS", "MissingTool", "build", "environment"]

PLACE: Final = CACHE / "native"
SUFFIX: Final = str(sysconfig.get_config_var("EXT_SUFFIX"))
DRIVER: Final = PLACE / f"_driver{SUFFIX}"
EXTENSIONS: Final = {
    "kproto.native._engine": PLACE / f"_engine{SUFFIX}",
    "wiredump.native._quick": PLACE / f"_quick{SUFFIX}",
}
_SANITIZED: Final = [
    "-shared", "-fPIC", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-strict-aliasing", "-std=c11",
    "-shared-libasan", "-fno-sanitize-recover=all",
]  # fmt: skip
_FUZZER: Final = "libclang_rt.fuzzer_no_main-{}.a"
_ASAN: Final = "libclang_rt.asan-{}.so"


class MissingTool(Exception):
    """This machine lacks a tool; the text says how to install it."""


def _clang() -> list[str]:
    command = shlex.split(os.environ.get("KPROTO_CLANG", "clang"))
    if not sys.platform.startswith("linux"):
        raise MissingTool("the guide c needs Linux")
    if shutil.which(command[0]) is None:
        raise MissingTool(f"no {command[0]}: apt-get install clang, or name one in KPROTO_CLANG")
    return command


def _runtime(name: str) -> Path:
    """Find one of clang's own libraries, in a folder per target or with the machine in its name."""
    asked = [*_clang(), "-print-runtime-dir"]
    folder = Path(subprocess.check_output(asked, text=True).strip())
    machine = os.uname().machine
    for path in (
        folder / name.replace("-{}", ""),
        folder / name.format(machine),
        folder.parent / "linux" / name.format(machine),
    ):
        if path.exists():
            return path
    raise MissingTool(
        f"clang has no {name.format(machine)}: apt-get install libclang-rt-dev (Debian 12: "
        "libclang-rt-14-dev)"
    )


def build() -> None:
    """Build. Raises MissingTool, and CalledProcessError if the compiler fails."""
    fuzzer = _runtime(_FUZZER)
    PLACE.mkdir(parents=True, exist_ok=True)
    include = f"-I{sysconfig.get_paths()['include']}"
    for module, file in EXTENSIONS.items():
        folder = ROOT.joinpath(*module.split(".")[:-1])
        sources = sorted(folder.glob("*.c"))
        if not _is_fresh(file, [*sources, *folder.glob("*.h")]):
            flags = [*_SANITIZED, "-fvisibility=hidden"]
            flags.append("-fsanitize=fuzzer-no-link,address,undefined")
            _compile([*flags, include, *map(str, sources)], file)
    driver = ROOT / "fuzz" / "native" / "driver.c"
    if not _is_fresh(DRIVER, [driver]):
        whole = ["-Wl,--whole-archive", str(fuzzer), "-Wl,--no-whole-archive"]
        flags = ["-shared", "-fPIC", "-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
        _compile([*flags, include, str(driver), *whole, "-lstdc++", "-lm", "-lpthread"], DRIVER)


def _compile(arguments: list[str], out: Path) -> None:
    made = out.with_suffix(f".{os.getpid()}.new")  # another process may build it too
    subprocess.run([*_clang(), *arguments, "-o", str(made)], check=True)
    made.replace(out)


def _is_fresh(file: Path, sources: list[Path]) -> bool:
    """Return whether a file is newer than its sources and this module."""
    if not file.exists():
        return False
    made = file.stat().st_mtime
    return all(source.stat().st_mtime < made for source in [*sources, Path(__file__)])


def environment() -> dict[str, str]:
    """Return the additional environment of the fuzzing process."""
    return {
        # The driver comes first: the sanitizers' library has empty versions of the functions by
        # which the extensions report coverage, and they would take precedence.
        "LD_PRELOAD": f"{DRIVER} {_runtime(_ASAN)}",
        # Memory that CPython keeps until it exits is not a leak; tests/native/test_memory.py
        # checks for ours.
        "ASAN_OPTIONS": "detect_leaks=0,abort_on_error=1,verify_asan_link_order=0",
        "UBSAN_OPTIONS": "print_stacktrace=1,halt_on_error=1",
        "PYTHONMALLOC": "malloc",
        "KPROTO_ENGINE": "native",
    }
