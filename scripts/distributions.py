"""Build the source distribution and a wheel, and check which files they have.

``release_check`` and ``without_compiler`` share this. It does not install anything.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from scripts.reference_pages import filled

__all__ = ["PACKAGES", "ROOT", "BadDistributionError", "build", "check_files", "unpack"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"kproto", "mockbroker", "wiredump", "kspec"}
CACHES = {"__pycache__", ".cache", ".git", ".hypothesis", ".mypy_cache", ".pytest_cache",
          ".ruff_cache", ".venv", "build", "dist", "node_modules"}  # fmt: skip
COMPILED = {".pyc", ".pyo", ".so", ".pyd"}
ADAPTERS = PurePosixPath("kspec/adapters")
"""Programs in several languages, built where they run."""

_OF_THE_SITE = ("requirements", "conformance-index", "conformance-cases", "maintainers-pages")
"""Parts for readers of the sources, and parts that link to pages which only the site has."""


class BadDistributionError(Exception):
    """A distribution cannot be built, or has files that do not belong in it."""


def build(out: Path, *kinds: str) -> list[Path]:
    """Build into ``out``: without ``kinds`` (``--sdist``, ``--wheel``) the source distribution, and
    a wheel from it. Raises BadDistributionError with the output of the build."""
    with tempfile.TemporaryDirectory(prefix="kproto-build-") as place:
        command = [sys.executable, "-m", "build", *kinds, "--outdir", str(out), _sources(place)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise BadDistributionError(f"{done.stdout}\nthe build failed")
    return sorted(out.glob("kproto-*"))


def _sources(place: str) -> str:
    """Copy the files that git tracks, or would, so that nothing of an earlier build is packed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        return str(ROOT)  # an unpacked source distribution
    for name in listed.stdout.split("\0"):
        if (ROOT / name).is_file():
            target = Path(place, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    _fill_pages(Path(place, "docs"))
    return place


def _fill_pages(docs: Path) -> None:
    """Put the generated tables into the pages, which the command ``help`` prints."""
    for page in docs.rglob("*.md"):
        text = page.read_text("utf-8")
        page.write_text(filled(text, without=_OF_THE_SITE), "utf-8")


def unpack(archive: Path, place: Path) -> Path:
    """Unpack a source distribution; return its folder."""
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    return place / archive.name.removesuffix(".tar.gz")


def check_files(file: Path) -> str:
    """Return a line with the number and size of a distribution's files. Raises
    BadDistributionError for files that do not belong in it."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            names = wheel.namelist()
        wrong = [name for name in names if not _fits_wheel(PurePosixPath(name))]
    else:
        with tarfile.open(file) as archive:
            names = [member.name for member in archive.getmembers() if member.isfile()]
        wrong = [name for name in names if not _fits_sdist(PurePosixPath(name))]
    if wrong:
        raise BadDistributionError(f"{file.name} must not have {', '.join(wrong[:5])}")
    return f"{file.name}: {len(names)} files, {file.stat().st_size / 1e6:.1f} MB"


def _fits_wheel(name: PurePosixPath) -> bool:
    if name.parts[0].endswith(".dist-info"):
        return True
    return (
        name.parts[0] in PACKAGES
        and not CACHES.intersection(name.parts)
        and "tests" not in name.parts
        and name.suffix not in {".pyc", ".pyo"}
        and (name.suffix not in {".c", ".h"} or ADAPTERS in name.parents)
    )


def _fits_sdist(name: PurePosixPath) -> bool:
    return not CACHES.intersection(name.parts) and name.suffix not in COMPILED
