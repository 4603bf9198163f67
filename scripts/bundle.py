"""Build a folder with ``mockbroker`` that needs no Python: ``dist/mockbroker-VERSION-PLATFORM``.

    make bundle

PyInstaller collects the interpreter, the packages and our data. It makes a folder on purpose: a
single file unpacks itself at each start, and runs as two processes, of which a kill leaves one.
``licenses/`` lists what is in the folder, with the licence of each part. Exits with 1 if a part has
no known licence, or one of the GPL: the bundle leaves out readline and gdbm, which are.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.metadata
import json
import platform
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import kproto
from kproto.client import Admin

__all__ = ["BundleError", "Part", "build", "check", "main", "parts"]

ROOT: Final = Path(__file__).resolve().parents[1]

_EXCLUDED: Final = (
    # GPL
    "readline", "_gdbm", "gdbm", "dbm.gnu",
    # of other commands, or optional parts of packages: nothing that mockbroker uses
    "IPython", "PIL", "curses", "cython", "eventlet", "gevent", "hypothesis",
    "jsonschema", "kspec", "matplotlib", "mypy", "numpy", "pandas", "pyarrow", "pydantic",
    "pydantic_core", "pytest",
    "setuptools", "tkinter", "wiredump",
)  # fmt: skip
_IMPORTED_BY_NAME: Final = (
    "kproto", "mockbroker", "cramjam", "cryptography", "google_crc32c", "greenlet",
    "javaproperties", "kazoo", "lz4", "re2", "scramp", "uvloop", "zstandard",
)  # fmt: skip
"""Packages that are imported by a text or inside functions, with all that is in them."""


class BundleError(Exception):
    """The bundle cannot be built, or must not be given away."""


def build(into: Path) -> Path:
    """Build the bundle in this folder. Returns the bundle's folder. Raises BundleError."""
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    bundle = into / f"mockbroker-{kproto.__version__}-{system}"
    shutil.rmtree(bundle, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="kproto-bundle-") as folder:
        work = Path(folder)
        _run_pyinstaller(work)
        found = [_BOOTLOADER, *parts(_collected(work))]
        into.mkdir(parents=True, exist_ok=True)
        shutil.move(work / "dist/mockbroker", bundle)
    _write_licenses(found, bundle / "licenses")
    return bundle


def _run_pyinstaller(work: Path) -> None:
    docs = work / "docs"
    for folder in ("tutorials", "how-to", "reference", "explanation"):
        (docs / folder).mkdir(parents=True)
        for page in (ROOT / "docs" / folder).glob("*.md"):  # for the command help
            shutil.copy(page, docs / folder)
    options = ["--onedir", "--name=mockbroker", "--noconfirm", "--log-level=ERROR"]
    options += [f"--{kind}path={work / kind}" for kind in ("dist", "work", "spec")]
    options += [f"--add-data={ROOT / 'schemas'}:kproto/_schemas", f"--add-data={docs}:kproto/_docs"]
    options += [f"--collect-submodules={name}" for name in _IMPORTED_BY_NAME]
    options += ["--collect-data=mockbroker", "--collect-data=kproto"]
    options += [f"--exclude-module={name}" for name in _EXCLUDED]
    options += ["--strip"] if sys.platform == "linux" and shutil.which("strip") else []
    command = [sys.executable, "-m", "PyInstaller", *options, str(ROOT / "mockbroker/__main__.py")]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise BundleError(f"PyInstaller failed:\n{done.stdout[-4000:]}")


# ---- licences ------------------------------------------------------------------------------------

_LIBRARIES: Final = {
    "libbz2": "bzip2-1.0.6",
    "libcrypto": "Apache-2.0",
    "libexpat": "MIT",
    "libffi": "MIT",
    "libgcc_s": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "liblzma": "0BSD",
    "libssl": "Apache-2.0",
    "libstdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libuuid": "BSD-3-Clause",
    "libz": "Zlib",
}
"""The licences of shared libraries of the system."""


class Part(NamedTuple):
    """``files`` are the texts of its licence, if it brings them."""

    name: str
    version: str
    licence: str
    files: tuple[Path, ...] = ()


_BOOTLOADER: Final = Part(
    "PyInstaller's bootloader", "", "GPL-2.0-or-later WITH Bootloader-exception"
)


def _collected(work: Path) -> set[Path]:
    """Every file that PyInstaller put into the folder, at the place where it was."""
    found: set[Path] = set()

    def visit(value: object) -> None:
        if isinstance(value, tuple) and len(value) == 3 and all(isinstance(v, str) for v in value):
            found.add(Path(value[1]).resolve())
        elif isinstance(value, list | tuple):
            for each in value:
                visit(each)

    for table in ("COLLECT-00.toc", "PYZ-00.toc"):
        visit(ast.literal_eval((work / "work/mockbroker" / table).read_text("utf-8")))
    return {path for path in found if path.is_file()}


def parts(files: set[Path]) -> list[Part]:
    """The parts that the files are of. Raises BundleError for a part without a known licence, or
    with one that the bundle must not have."""
    owners = dict(_installed())
    used = {owners[path].name: owners[path] for path in files if path in owners}
    for builder in ("kproto", "pyinstaller", "pyinstaller-hooks-contrib"):
        used.pop(builder, None)
    python = [Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "platstdlib")]
    if sys.platform == "win32":
        python.append(Path(sys.base_prefix).resolve())
    others = [
        path
        for path in files - owners.keys()
        if re.search(r"\.(so|dylib|dll)\b", path.name)
        and not re.match(r"(lib)?python3", path.name)
        and not any(path.is_relative_to(each) for each in (ROOT, *python))
    ]
    found = [
        Part("kproto", kproto.__version__, "Apache-2.0", (ROOT / "LICENSE", ROOT / "NOTICE")),
        Part("Python", platform.python_version(), "PSF-2.0", tuple(_license_of_python(python))),
        *map(_of_distribution, sorted(used.values(), key=lambda each: each.name.lower())),
        *(_of_library(path) for path in sorted(others)),
    ]
    for part in found:
        if "GPL" in part.licence and "exception" not in part.licence:
            raise BundleError(f"{part.name} has the licence {part.licence}: leave it out")
    return found


def _installed() -> Iterator[tuple[Path, importlib.metadata.Distribution]]:
    """Every file of a distribution. Folders are resolved, not the files, which are many."""
    for distribution in importlib.metadata.distributions():
        folder = Path(str(distribution.locate_file(""))).resolve()
        for file in distribution.files or ():
            yield folder / file, distribution


def _license_of_python(folders: Iterable[Path]) -> Iterator[Path]:
    named = (folder / "LICENSE.txt" for folder in (*folders, Path(sys.base_prefix)))
    debian = Path(f"/usr/share/doc/python{sys.version_info[0]}.{sys.version_info[1]}/copyright")
    yield from [path for path in (*named, debian) if path.is_file()][:1]


def _of_distribution(found: importlib.metadata.Distribution) -> Part:
    metadata = found.metadata
    classified = [
        each.rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier", ())
        if each.startswith("License :: ") and each != "License :: OSI Approved"
    ]
    licence = metadata["License-Expression"] or "; ".join(classified) or metadata["License"]
    if not licence:
        raise BundleError(f"{found.name} does not say its licence")
    texts = tuple(
        Path(str(found.locate_file(file)))
        for file in found.files or ()
        if re.match(r"(licen[cs]e|copying|notice)", file.name, re.I) and file.suffix != ".py"
    )
    return Part(found.name, found.version, licence.splitlines()[0], texts)


def _of_library(path: Path) -> Part:
    name = path.name.partition(".")[0].partition("-")[0]
    if name not in _LIBRARIES:
        raise BundleError(f"the licence of {path} is unknown: leave it out, or add its licence")
    return Part(path.name, "of the system", _LIBRARIES[name])


def _write_licenses(found: list[Part], folder: Path) -> None:
    lines = ["# What is in this folder", "", "| part | version | licence |", "|---|---|---|"]
    for part in found:
        lines.append(f"| {part.name} | {part.version} | {part.licence} |")
        for number, file in enumerate(part.files):
            target = folder / part.name.lower() / f"{number or ''}{file.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    (folder / "README.md").write_text("\n".join([*lines, ""]), "utf-8")


# ---- check ---------------------------------------------------------------------------------------

_PARENT: Final = """
import os, subprocess, sys
kept = {name: value for name, value in os.environ.items() if name == "SYSTEMROOT"}
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=kept)
print(child.pid, child.stdout.readline().decode(), flush=True)
child.wait()
"""


def check(bundle: Path) -> float:
    """Start a server from the bundle without an environment, use it with a client and with ``ctl``,
    and kill the server's parent: the server must end. Returns the seconds until it is up. Raises
    BundleError."""
    program = str(bundle / "mockbroker")
    serve = [program, "serve", "--control=127.0.0.1:0", "--topic=foo:1:3", "--exit-on-stdin-eof"]
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, *serve], stdout=subprocess.PIPE
    ) as parent:
        try:
            assert parent.stdout is not None
            pid, _, first = parent.stdout.readline().decode().partition(" ")
            seconds = time.monotonic() - began
            try:
                ready = json.loads(first)
            except ValueError:
                raise BundleError(f"{program} did not start: {first!r}") from None
            asyncio.run(_use(ready["bootstrap"]))
            ctl = [program, "ctl", ready["control"], "journal", "--api", "Metadata"]
            done = subprocess.run(ctl, capture_output=True, text=True, check=False)
            if done.returncode or "Metadata" not in done.stdout:
                raise BundleError(f"{' '.join(ctl)}: {done.stdout}{done.stderr}")
        finally:
            parent.kill()
    deadline = time.monotonic() + _ENDING_SECONDS
    while _listens(ready["control"]):
        if time.monotonic() > deadline:
            raise BundleError(f"process {pid} survives the end of its parent")
        time.sleep(0.05)
    return seconds


_ENDING_SECONDS: Final = 30.0


async def _use(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        topics = await admin.list_topics()
    if "foo" not in topics:
        raise BundleError(f"the cluster's topics are {topics}")


def _listens(url: str) -> bool:
    host, _, port = url.rpartition("/")[2].rpartition(":")
    with socket.socket() as connection:
        connection.settimeout(5)
        return connection.connect_ex((host, int(port))) == 0


def main() -> None:
    try:
        bundle = build(ROOT / "dist")
        seconds = check(bundle)
    except BundleError as error:
        sys.exit(f"bundle: {error}")
    size = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    print((bundle / "licenses/README.md").read_text("utf-8"))
    print(f"{bundle.relative_to(ROOT)}: {size / 1e6:.0f} MB, up in {seconds:.1f} s")


if __name__ == "__main__":
    main()
