"""Folders of the cache, and commands that fill them.

Everything goes under ``$KPROTO_CACHE`` (by default ``~/.cache/kproto``), in a folder per label and
hash of its inputs, so that a second run builds nothing and a changed input builds anew. Package
managers run in the usual way, and failed downloads are retried. Nothing here is specific to Kafka.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from kproto.errors import AbsentError

__all__ = ["built", "cache", "download", "run"]

ATTEMPTS: Final = 3
BUILD_SECONDS: Final = 1500  # the Rust client takes minutes on a busy machine


def cache() -> Path:
    named = os.environ.get("KPROTO_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "kproto"


def built(label: str, made_of: Iterable[str], build: Callable[[Path], None]) -> Path:
    """Return the cache folder of this label and hash, made by ``build`` if it does not exist.

    It is built in a sibling folder and then renamed, so that it is complete or absent.
    """
    digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]
    folder = cache() / f"{label}-{digest}"
    if folder.is_dir():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
    except OSError as error:
        raise AbsentError(
            f"{partial}: {error.strerror}; KPROTO_CACHE sets another folder"
        ) from None
    try:
        build(partial)
        with suppress(OSError):  # another process may have made an equivalent one
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    if not folder.is_dir():
        raise AbsentError(f"{folder} cannot be created; KPROTO_CACHE sets another folder")
    return folder


def run(command: list[str], cwd: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run an installing command and retry it if it fails. Raises AbsentError with its last
    lines."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            done = subprocess.run(
                command,
                cwd=cwd,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=BUILD_SECONDS,
                text=True,
            )
        except subprocess.TimeoutExpired:
            raise AbsentError(f"`{command[0]}` did not finish in {BUILD_SECONDS} s") from None
        if done.returncode == 0:
            return
        if attempt < ATTEMPTS:
            time.sleep(2 * attempt)  # a transient failure of the registry; no other wait is needed
    words = " ".join(done.stdout.split()) or f"exit {done.returncode}"
    raise AbsentError(f"`{' '.join(command[:3])}` failed {ATTEMPTS} times: {words[-300:]}")


def download(packages: Iterable[str], folder: Path) -> None:
    """Fetch packages by the machine's package lists.

    If it has none, as in many containers, or they name files that the mirror no longer has, use
    lists of our own.
    """
    try:
        return run(["apt-get", "download", "-q", *packages], cwd=folder)
    except AbsentError:
        lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    options = ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={lists}")
    run(["apt-get", *options, "update", "-q"], cwd=folder)
    run(["apt-get", *options, "download", "-q", *packages], cwd=folder)
    return shutil.rmtree(lists)
