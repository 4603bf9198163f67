"""What is built of the repository: a source distribution that is all of it, and wheels of that.

The C engine is in a wheel where a compiler is, and left out with a word where none is. That the
tests pass without it is for ``scripts/without_compiler.py`` to show.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
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


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """What git tracks, or would: all that is the repository's."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout: nothing says which files are the repository's")
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def archive(tracked: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, of a copy: a build leaves folders that the next one would pack."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("sdist")
    for name in tracked:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    # What a checkout that is in use has besides.
    for name in ("kproto/native/_engine.so", "tests/__pycache__/conftest.cpython-311.pyc"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes(b"")
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = out.glob("kproto-*.tar.gz")
    return built


def test_the_source_distribution_is_the_repository(archive: Path, tracked: list[str]) -> None:
    with tarfile.open(archive) as opened:
        packed = {
            member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()
        }
    assert set(tracked) - packed == set()
    more = {name for name in packed - set(tracked) if not name.startswith("kproto.egg-info/")}
    assert more == {"PKG-INFO", "setup.cfg"}


def build(archive: Path, out: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """A wheel of the source distribution."""
    environment = {key: value for key, value in os.environ.items() if key != "KPROTO_ENGINE"}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(out), str(archive)]
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


def test_with_a_compiler(archive: Path, tmp_path: Path) -> None:
    engines.require_native()
    done = build(archive, tmp_path / "out", KPROTO_ENGINE="native")
    assert done.returncode == 0, done.stderr
    place = unpacked(tmp_path / "out")
    assert [path.parent.name for path in place.rglob("_engine*.so")] == ["native"]
    assert (place / "kproto" / "native" / "_engine.pyi").is_file()
    assert not list(place.rglob("*.[ch]"))
    assert ask(place, KPROTO_ENGINE="native").stdout == "native|\n"


def test_without_a_compiler(archive: Path, tmp_path: Path) -> None:
    """The install goes on, and everything works; the reason is said in one line when asked."""
    done = build(archive, tmp_path / "out", **NO_COMPILER)
    assert done.returncode == 0, done.stderr
    place = unpacked(tmp_path / "out")
    assert not list(place.rglob("_engine*.so"))
    said = ask(place)
    assert said.stdout.startswith("pure|the native engine was not built; to build it, install")
    assert said.stdout.count("\n") == 1
    assert (
        "KPROTO_ENGINE=native, but the native engine was not built"
        in ask(place, KPROTO_ENGINE="native").stderr
    )


def test_insisting_without_a_compiler(archive: Path, tmp_path: Path) -> None:
    done = build(archive, tmp_path / "out", KPROTO_ENGINE="native", **NO_COMPILER)
    assert done.returncode != 0
    assert "no-such-compiler" in done.stderr + done.stdout
