"""Class paths for ``Oracle.java``: jars by Maven, one folder a release, then ``javac``.

Knows where the results are kept (``.cache/oracle``, keyed by what went into them) and nothing of
what the program does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["class_path"]

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
SOURCE = HERE / "Oracle.java"
CACHE = HERE.parents[1] / ".cache" / "oracle"

DOWNLOAD_ATTEMPTS = 3
DOWNLOAD_SECONDS = 600.0
COMPILE_SECONDS = 120.0
NATIVE_COMPRESSION = "org.rocksdb,com.github.luben"
"""Groups left out: large, and no message class needs them."""


def class_path(release: str) -> str:
    """The class path that runs ``Oracle`` with the classes of Kafka ``release``.

    Raises RuntimeError with the tool's own words where Maven or javac fails.
    """
    jars = CACHE / f"{release}-{_digest(POM)}"
    if not jars.is_dir():
        _make(jars, lambda into: _download(release, into))
    classes = CACHE / f"{release}-{_digest(POM)}-{_digest(SOURCE)}"
    if not classes.is_dir():
        _make(classes, lambda into: _compile(jars, into))
    return os.pathsep.join(map(str, [classes, *sorted(jars.glob("*.jar"))]))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def _make(folder: Path, fill: Callable[[Path], None]) -> None:
    """Create ``folder`` whole or not at all, also when two runs do so at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=folder.parent, prefix="building-"))
    try:
        fill(building)
        if not folder.is_dir():
            building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _download(release: str, into: Path) -> None:
    command = [
        "mvn", "-B", "-q", "-f", str(POM), f"-Dkafka.version={release}",
        "dependency:copy-dependencies", "-DincludeScope=runtime",
        f"-DexcludeGroupIds={NATIVE_COMPRESSION}", f"-DoutputDirectory={into}",
    ]  # fmt: skip
    for attempt in range(1, DOWNLOAD_ATTEMPTS + 1):
        # Registries fail now and then; what did arrive is kept in Maven's own repository.
        failure = _run(command, DOWNLOAD_SECONDS)
        if failure is None:
            return
        if attempt == DOWNLOAD_ATTEMPTS:
            raise RuntimeError(f"Maven could not fetch Kafka {release}:\n{failure}")


def _compile(jars: Path, into: Path) -> None:
    command = ["javac", "-d", str(into), "-cp", f"{jars}/*", str(SOURCE)]
    failure = _run(command, COMPILE_SECONDS)
    if failure is not None:
        raise RuntimeError(f"javac refused {SOURCE.name}:\n{failure}")


def _run(command: Sequence[str], seconds: float) -> str | None:
    """None on success, else what the command printed."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    return None if done.returncode == 0 else done.stdout[-4000:]
