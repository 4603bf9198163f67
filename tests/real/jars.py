"""Class paths of Kafka brokers: jars by Maven, one folder a release, kept for all runs.

Knows where they are kept (``.cache/real``, keyed by release and pom) and nothing of what runs.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["class_path"]

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
CACHE = HERE.parents[1] / ".cache" / "real"

ATTEMPTS = 3
SECONDS = 600.0


def class_path(release: str) -> str:
    """The class path of Kafka ``release``. RuntimeError with Maven's own words where it fails."""
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    folder = CACHE / f"{release}-{digest}"
    if not folder.is_dir():
        _download(release, folder)
    return f"{folder}/*"


def _download(release: str, folder: Path) -> None:
    """Create ``folder`` whole or not at all, also when two runs do so at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=folder.parent, prefix="building-"))
    command = [
        "mvn", "-B", "-q", "-f", str(POM), f"-Dkafka.version={release}",
        f"-Dscala.version={_scala(release)}", *_profiles(release),
        "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={building}",
    ]  # fmt: skip
    try:
        for attempt in range(1, ATTEMPTS + 1):
            # Registries fail now and then; what did arrive is kept in Maven's own repository.
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
            )
            if done.returncode == 0:
                break
            if attempt == ATTEMPTS:
                raise RuntimeError(f"Maven could not fetch Kafka {release}:\n{done.stdout[-4000:]}")
        if not folder.is_dir():
            building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _profiles(release: str) -> tuple[str, ...]:
    """Clients of ZooKeeper 3.4.13 and 3.4.14 do not resolve addresses as JDKs since 14 write them.
    Kafka 2.0 to 2.3 depend on these versions, Kafka 1.1 on 3.4.10. Kafka 2.4 to 4.0 describe the
    loggers of log4j, which they do not depend on."""
    major, minor = map(int, release.split(".")[:2])
    if (2, 0) <= (major, minor) < (2, 4):
        return ("-Pzookeeper-3.4.10",)
    if (major, minor) == (4, 0):
        return ("-Plog4j-2",)
    return ("-Plog4j-1",) if (2, 4) <= (major, minor) < (4, 0) else ()


def _scala(release: str) -> str:
    """Kafka is published for Scala 2.13 since 2.4, for 2.12 before."""
    major, minor = map(int, release.split(".")[:2])
    return "2.13" if (major, minor) >= (2, 4) else "2.12"
