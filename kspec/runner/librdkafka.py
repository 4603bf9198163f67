"""Fetch librdkafka's sources by release and build the C library.

No registry has them by themselves; the npm package of another client brings them. What the library
is linked with is the machine's if it has the headers, and otherwise comes from Debian packages,
which are unpacked into the cache.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kproto.builds import built, cache, download, run
from kproto.errors import AbsentError
from kspec.runner import toolchains

__all__ = ["PACKAGE", "PACKED", "built_library", "package_config"]

PACKAGE: Final = "@confluentinc/kafka-javascript"
PACKED: Final = {"2.15.1": "1.10.1"}
"""Releases of the package by those of librdkafka. npm is asked for others."""
_SOURCES: Final = "package/deps/librdkafka/"
_CONFIGURE: Final = ("./configure", "--disable-curl", "--disable-sasl")
"""Without Cyrus SASL, which only GSSAPI needs; PLAIN and SCRAM are librdkafka's own."""
_LIBRARIES: Final[Mapping[str, str]] = {
    "openssl/ssl.h": "libssl-dev",
    "zlib.h": "zlib1g-dev",
    "zstd.h": "libzstd-dev",
}
"""The Debian package of each header."""


def built_library(release: str) -> Path:
    """Return the folder of the sources, configured and with ``src/librdkafka.a``. Raises
    AbsentError.

    Only one process builds; others wait for it.
    """
    with _only_one():
        flags = _flags()
        made_of = [release, *_CONFIGURE, *flags, toolchains.find("gcc") or ""]

        def build(folder: Path) -> None:
            _fetch(release, folder)
            # The compiler for C++ has to exist. Nothing is compiled by it here.
            run([*_CONFIGURE, *flags], cwd=folder, environment={"CXX": "gcc"})
            run(["make", "-s", f"-j{os.cpu_count() or 1}", "-C", "src", "librdkafka.a"], cwd=folder)

        return built(f"librdkafka-{release}", made_of, build)


def package_config(library: Path, release: str) -> str:
    """Return a file for pkg-config, by which programs link ``src/librdkafka.a``."""
    found = re.findall(
        r"^(LDFLAGS|LIBS)\+=\s*(.*)$", (library / "Makefile.config").read_text(), re.M
    )
    flags = [words for kind in ("LDFLAGS", "LIBS") for name, words in found if name == kind]
    return (
        f"Name: rdkafka\nDescription: librdkafka\nVersion: {release}\n"
        f"Cflags: -I{library}/src\nLibs: -L{library}/src -lrdkafka {' '.join(flags)} -lpthread\n"
    )


@contextmanager
def _only_one() -> Iterator[None]:
    import fcntl  # not on Windows, which cannot build it either

    path = cache() / "librdkafka.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise AbsentError(f"{path}: {error.strerror}; KPROTO_CACHE sets another folder") from None
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # closing the file unlocks it
        yield


def _fetch(release: str, folder: Path) -> None:
    """Unpack the sources into ``folder``."""
    package = f"{PACKAGE}@{PACKED.get(release) or _package_release(release)}"
    run(["npm", "pack", "--ignore-scripts", "--loglevel=error", package], cwd=folder)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        for each in packed.getmembers():
            if each.name.startswith(_SOURCES):
                each.name = each.name.removeprefix(_SOURCES)
                packed.extract(each, folder, filter="data")
    archive.unlink()


def _package_release(release: str) -> str:
    """Return the package's newest release that brings this one of librdkafka."""
    every = f"{PACKAGE}@>=0"  # with * it would be the latest alone
    command = ["npm", "view", "--json", "--loglevel=error", every, "version", "librdkafka"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
        rows = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        raise AbsentError(f"`{' '.join(command[:2])} {PACKAGE}` failed") from None
    found: dict[str, str] = {each["version"]: each["librdkafka"] for each in rows}
    wanted = [version for version, brought in found.items() if brought == release]
    if not wanted:
        known = ", ".join(sorted(set(found.values()), key=_numbers))
        raise AbsentError(f"{PACKAGE} never had librdkafka {release}, only {known}")
    return max(wanted, key=_numbers)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _flags() -> list[str]:
    """Return where the headers and libraries are that this machine lacks."""
    lacking = [package for header, package in _LIBRARIES.items() if not _is_found(header)]
    if not lacking:
        return []

    def build(folder: Path) -> None:
        download(lacking, folder)
        for package in folder.glob("*.deb"):
            run(["dpkg-deb", "-x", str(package), str(folder)], cwd=folder)
            package.unlink()
        # Links to libraries of packages that are not installed. The static ones are whole.
        for path in folder.glob("usr/lib/**/*.so"):
            path.unlink()

    try:
        folder = built("librdkafka-libraries", lacking, build)
    except AbsentError as error:
        raise AbsentError(f"needs {', '.join(lacking)} (Debian): {error}") from None
    multiarch = {path.parent for path in folder.glob("usr/lib/*/*.a")}
    headers = [folder / "usr" / "include", *(folder.glob("usr/include/*-linux-*"))]
    return [
        "--CPPFLAGS=" + " ".join(f"-I{each}" for each in headers),
        "--LDFLAGS=" + " ".join(f"-L{each}" for each in sorted(multiarch)),
    ]


def _is_found(header: str) -> bool:
    command = ["gcc", "-E", "-include", header, "-x", "c", os.devnull]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0
