"""The C engine in a build: there where a compiler is, left out with a word where none is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import engines

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow

NO_COMPILER = {"CC": "no-such-compiler", "CXX": "no-such-compiler"}
ASK = (
    "import kproto\n"
    "from kproto.messages import HeartbeatRequest as H\n"
    "assert H.decode(H(group_id='g').encode(4), 4) == H(group_id='g')\n"
    "print(kproto.engine, kproto.engine_note, sep='|')\n"
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """What git tracks: a build leaves folders behind that the next one would pack."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout: nothing says which files are the repository's")
    place = tmp_path / "source"
    for name in done.stdout.splitlines():
        if name.startswith(("kproto/", "schemas/")) or "/" not in name:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place / name)
    return place


def build(source: Path, out: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "KPROTO_ENGINE"}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(out), str(source)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**environment, **settings}, check=False
    )


def unpacked(out: Path) -> Path:
    (wheel,) = out.glob("kproto-*.whl")
    zipfile.ZipFile(wheel).extractall(out / "unpacked")
    return out / "unpacked"


def ask(place: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(place), "PATH": os.environ["PATH"], **settings}
    return subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, cwd=place, env=environment
    )


def test_with_a_compiler(source: Path, tmp_path: Path) -> None:
    engines.require_native()
    done = build(source, tmp_path / "out", KPROTO_ENGINE="native")
    assert done.returncode == 0, done.stderr
    place = unpacked(tmp_path / "out")
    assert [path.parent.name for path in place.rglob("_engine*.so")] == ["native"]
    assert ask(place, KPROTO_ENGINE="native").stdout == "native|\n"


def test_without_a_compiler(source: Path, tmp_path: Path) -> None:
    """The install goes on, and everything works; the reason is said in one line when asked."""
    done = build(source, tmp_path / "out", **NO_COMPILER)
    assert done.returncode == 0, done.stderr
    place = unpacked(tmp_path / "out")
    assert not list(place.rglob("_engine*.so"))
    said = ask(place)
    assert said.stdout.startswith("pure|the native engine was not built; to build it, have a C")
    assert said.stdout.count("\n") == 1
    assert (
        "KPROTO_ENGINE=native, but the native engine was not built"
        in ask(place, KPROTO_ENGINE="native").stderr
    )


def test_insisting_without_a_compiler(source: Path, tmp_path: Path) -> None:
    done = build(source, tmp_path / "out", KPROTO_ENGINE="native", **NO_COMPILER)
    assert done.returncode != 0
    assert "no-such-compiler" in done.stderr + done.stdout
