"""Class paths for ``Oracle.java``: jars by Maven, one folder a release, then ``javac``.

Knows where the results are kept (``.cache/oracle``, keyed by what went into them) and nothing of
what the program does. Other folders with a ``pom.xml`` and Java sources are built the same way.
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
CACHE = HERE.parents[1] / ".cache" / "oracle"

DOWNLOAD_ATTEMPTS = 3
DOWNLOAD_SECONDS = 600.0
COMPILE_SECONDS = 120.0
NATIVE_COMPRESSION = "org.rocksdb,com.github.luben"
"""Groups left out: large, and no message class needs them."""


def class_path(release: str, folder: Path = HERE, leave_out: str = NATIVE_COMPRESSION) -> str:
    """The class path that runs the program of ``folder`` with the classes of Kafka ``release``.

    ``leave_out``: groups whose jars are not needed. Raises RuntimeError with the tool's own words
    where Maven or javac fails.
    """
    pom, sources = folder / "pom.xml", sorted(folder.rglob("*.java"))
    jars = CACHE / f"{release}-{_digest(pom)}"
    if not jars.is_dir():
        _make(jars, lambda into: _download(release, pom, leave_out, into))
    classes = CACHE / f"{release}-{_digest(pom)}-{_digest(*sources)}"
    if not classes.is_dir():
        _make(classes, lambda into: _compile(jars, sources, into))
    return os.pathsep.join(map(str, [classes, *sorted(jars.glob("*.jar"))]))


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


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


def _download(release: str, pom: Path, leave_out: str, into: Path) -> None:
    command = [
        "mvn", "-B", "-q", "-f", str(pom), f"-Dkafka.version={release}",
        "dependency:copy-dependencies", "-DincludeScope=runtime",
        f"-DexcludeGroupIds={leave_out}", f"-DoutputDirectory={into}",
    ]  # fmt: skip
    for attempt in range(1, DOWNLOAD_ATTEMPTS + 1):
        # Registries fail now and then; what did arrive is kept in Maven's own repository.
        failure = _run(command, DOWNLOAD_SECONDS)
        if failure is None:
            return
        if attempt == DOWNLOAD_ATTEMPTS:
            raise RuntimeError(f"Maven could not fetch Kafka {release}:\n{failure}")


def _compile(jars: Path, sources: Sequence[Path], into: Path) -> None:
    command = ["javac", "-d", str(into), "-cp", f"{jars}/*", *map(str, sources)]
    failure = _run(command, COMPILE_SECONDS)
    if failure is not None:
        raise RuntimeError(f"javac refused {sources[0].name}:\n{failure}")


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
