"""What is built of the repository: a source distribution that is all of it, and wheels of that.

The C engine is in a wheel where a compiler is, and left out with a word where none is. That the
tests pass without it is for ``scripts/without_compiler.py`` to show.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kproto.cli.help_topics import help_topics
from scripts.distributions import PACKAGES, BadDistributionError, check_files
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


def test_caches_and_tests_do_not_fit(archive: Path, tmp_path: Path) -> None:
    assert check_files(archive).startswith(archive.name)
    for number, name in enumerate(
        ["tests/test_x.py", "kproto/__pycache__/a.pyc", "kproto/native/engine.c", "scripts/ci.py"]
    ):
        wheel = tmp_path / f"{number}.whl"
        with zipfile.ZipFile(wheel, "w") as opened:
            opened.writestr("kproto/__init__.py", "")
            opened.writestr(name, "")
        with pytest.raises(BadDistributionError, match=name):
            check_files(wheel)


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


@pytest.fixture(scope="module")
def installed(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel, built with a compiler, which does not optimise: that takes a minute."""
    engines.require_native()
    out = tmp_path_factory.mktemp("wheel")
    done = build(archive, out, KPROTO_ENGINE="native", KPROTO_CFLAGS="-O0")
    assert done.returncode == 0, done.stderr
    (wheel,) = out.glob("kproto-*.whl")
    assert check_files(wheel)
    return unpacked(out)


@pytest.mark.requirement("C-01")
def test_with_a_compiler(installed: Path) -> None:
    """Away from the repository the engine works, and the codec finds its schemas."""
    assert [path.parent.name for path in installed.rglob("_engine*.so")] == ["native"]
    assert ask(installed, KPROTO_ENGINE="native").stdout == "native|\n"
    pages = {path.name for path in (installed / "kproto" / "_docs").rglob("*.md")}
    assert pages >= {f"{topic}.md" for topic in help_topics()}


def test_the_wheel_has_every_file_of_the_packages(installed: Path, tracked: list[str]) -> None:
    """And the schemas, but no C sources."""
    folders = {**{f"{name}/": f"{name}/" for name in PACKAGES}, "schemas/": "kproto/_schemas/"}
    wanted = {
        target + name.removeprefix(folder)
        for name in tracked
        for folder, target in folders.items()
        if name.startswith(folder) and not name.endswith((".c", ".h"))
    }
    assert len(wanted) > 1000
    assert {name for name in wanted if not (installed / name).is_file()} == set()


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
