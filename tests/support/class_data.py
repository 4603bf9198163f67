"""Archives of loaded classes, from which a JVM starts with two thirds of the CPU time.

Reading and verifying its classes is most of what a short-lived JVM does. The first process that
loads them leaves an archive (class data sharing, JDK 13 and later), and later ones map it. A JVM
ignores an archive of another JDK or class path by itself, as it does one that is absent.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

__all__ = ["ClassData", "SparkClassData"]

CACHE: Final = Path(__file__).resolve().parents[2] / ".cache"

SECONDS: Final = 60.0
"""Until the JVM that is to write an archive is given up on."""

_QUIET: Final = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
_RECORD: Final = ("-XX:+IgnoreUnrecognizedVMOptions", "-XX:+RecordDynamicDumpInfo")


class ClassData:
    """The archive of one kind of program; ``stem`` is its path, but for what names the JDK."""

    def __init__(self, stem: Path) -> None:
        self._path = stem.with_name(f"{stem.name}-{_jdk()}.jsa")

    def options(self, *, record: bool = False) -> tuple[str, ...]:
        """A JVM's options: to map the archive; or if there is none and ``record``, to be ready to
        write it, which costs time."""
        if self._path.exists():
            return (*_QUIET, f"-XX:SharedArchiveFile={self._path}")
        return (*_QUIET, *_RECORD) if record else ()

    def keep_of(self, process: subprocess.Popen[bytes]) -> None:
        """Archive what this JVM has loaded, unless that was done before or is being done.

        The JVM does nothing else meanwhile, and if it takes longer than ``SECONDS``, not
        afterwards either: it should be one that nobody waits for. Nothing happens where the process
        has ended, or its JDK is too old or lacks ``jcmd``.
        """
        jcmd = shutil.which("jcmd")
        if jcmd is None or self._path.exists() or process.poll() is not None:
            return
        with _unless_locked(self._path.with_suffix(".lock")) as is_ours:
            if not is_ours or self._path.exists():
                return
            # A JVM that is given up on may still write there.
            with tempfile.TemporaryDirectory(
                dir=self._path.parent, prefix="archive-", ignore_cleanup_errors=True
            ) as folder:
                made = Path(folder) / self._path.name
                command = [jcmd, str(process.pid), "VM.cds", "dynamic_dump", str(made)]
                try:
                    subprocess.run(command, capture_output=True, timeout=SECONDS, check=True)
                except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
                    return  # what there is may be half an archive
                if made.exists():
                    os.replace(made, self._path)


@contextmanager
def _unless_locked(path: Path) -> Iterator[bool]:
    """Hold the lock of this file; False where another process holds it."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # closing the file unlocks it
        except BlockingIOError:
            yield False
        else:
            yield True


class SparkClassData(ClassData):
    """The archive of drivers that this process starts, directly or by a command."""

    def __init__(self) -> None:
        folder = CACHE / "spark"
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder / _version("pyspark"))
        self.hand_on()

    def hand_on(self, *, record: bool = False) -> None:
        """``spark-submit``, which PySpark starts, gives a driver the options in this variable."""
        os.environ["SPARK_SUBMIT_OPTS"] = " ".join(self.options(record=record))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _jdk() -> str:
    """Another name for each JDK: archives are of no use to another one."""
    java = Path(shutil.which("java") or "java").resolve()
    changed = java.stat().st_mtime_ns if java.exists() else 0
    return hashlib.sha256(f"{java} {changed}".encode()).hexdigest()[:12]
