"""The captures to measure, each made once and kept under a key of the sources that made it.

They have real traffic if this machine allows a network namespace and capturing in it; otherwise
``synthetic`` writes them, and the reason is stated. A change of the sources makes them anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.dump import giant, synthetic

__all__ = ["Capture", "Maker"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / ".cache" / "bench-dump"
TRAFFIC_SECONDS = 900


class Capture(NamedTuple):
    """``ports`` are those of the brokers. ``frames`` and ``records`` are known if we wrote the
    capture, and None for real clients. ``origin`` describes where it comes from."""

    name: str
    path: Path
    ports: tuple[int, ...]
    origin: str
    frames: int | None = None
    records: int | None = None

    @property
    def megabytes(self) -> float:
        return self.path.stat().st_size / 1e6


class Maker:
    """Makes captures in ``folder``; if ``real`` is False, without real traffic."""

    def __init__(self, folder: Path | None = None, *, real: bool = True) -> None:
        self.folder = folder or CACHE
        self.folder.mkdir(parents=True, exist_ok=True)
        self._refused = "" if real else "not asked for"
        if real and (missing := _missing()):
            self._refused = missing

    def traffic(self, shape: str, megabytes: float, *, newest: bool = False) -> Capture | None:
        """Return ``small`` or ``big``, with real traffic if that works here. ``newest`` uses
        versions that tshark does not decode; None without real traffic."""
        name = f"{shape}-newest" if newest else shape
        versions = "in its newest versions" if newest else "in versions that tshark decodes"
        if not self._refused:
            try:
                return self._kept(
                    name, megabytes, "traffic",
                    lambda path: _capture(shape, path, megabytes, newest),
                    f"librdkafka and its mock cluster {versions}, captured by tcpdump in a network "
                    "namespace",
                )  # fmt: skip
            except (subprocess.SubprocessError, OSError) as error:
                self._refused = f"capturing failed ({_last_line(error)})"
        if newest:
            return None
        write = {"small": synthetic.write_small, "big": synthetic.write_big}[shape]
        return self._kept(
            shape, megabytes, "synthetic",
            lambda path: write(path, int(megabytes * 1e6)),
            f"generated, because real traffic cannot be captured here: {self._refused}",
        )  # fmt: skip

    def giant(self, megabytes: float, connections: int = 1) -> Capture:
        """Return a capture of our own frames, repeated on one connection or on several."""
        several = "one connection" if connections == 1 else f"{connections} connections"
        return self._kept(
            f"giant-{connections}", megabytes, "giant",
            lambda path: giant.write(path, int(megabytes * 1e6), connections),
            f"generated: Produce requests of 14 kB on {several}",
        )  # fmt: skip

    def _kept(
        self,
        name: str,
        megabytes: float,
        source: str,
        make: Callable[[Path], dict[str, Any]],
        origin: str,
    ) -> Capture:
        path = self.folder / f"{name}-{megabytes:g}-{_key(source)}.pcap"
        described = path.with_suffix(".json")
        if not described.exists():
            unfinished = path.with_suffix(".part")
            told = make(unfinished)
            unfinished.rename(path)
            described.write_text(json.dumps(told))
        told = json.loads(described.read_text())
        return Capture(
            name, path, tuple(told["ports"]), origin, told.get("frames"), told.get("records")
        )


def _key(source: str) -> str:
    """Return the key of a capture that the module makes, which changes with its source."""
    more = {"giant": "synthetic", "traffic": "mock_cluster"}
    names = {source, more.get(source, source)}
    text = b"".join((HERE / f"{name}.py").read_bytes() for name in sorted(names))
    return hashlib.sha256(text).hexdigest()[:12]


def _missing() -> str:
    for program in ("unshare", "ip", "tcpdump"):
        if shutil.which(program) is None:
            return f"{program} is absent"
    try:
        import confluent_kafka  # noqa: F401  # only whether it is there
    except ImportError:
        return "confluent-kafka is not installed"
    return ""


def _capture(shape: str, path: Path, megabytes: float, newest: bool) -> dict[str, Any]:
    """Capture in a network namespace and, unless we are root, in a user namespace."""
    apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    command = [*apart, sys.executable, "-m", "benchmarks.dump.traffic", shape, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    print(f"capturing {shape}, {megabytes:g} MB", file=sys.stderr, flush=True)
    subprocess.run(
        [*command, "--megabytes", str(megabytes), *(["--newest"] if newest else [])],
        check=True, timeout=TRAFFIC_SECONDS, cwd=ROOT,
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    told = Path(f"{path}.json")
    found: dict[str, Any] = json.loads(told.read_text())
    told.unlink()
    return found


def _last_line(error: Exception) -> str:
    said = getattr(error, "stderr", None) or b""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else str(error)
