"""Storage of inputs: the committed corpus, and what runs found, in ``.cache/fuzz``.

A file is named by its content, so that each input is stored once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

__all__ = [
    "CACHE", "CORPUS", "CRASHES", "ROOT", "committed", "found_folder", "name_of", "seeds_folder",
    "write",
]  # fmt: skip

ROOT: Final = Path(__file__).resolve().parent.parent
CORPUS: Final = ROOT / "fuzz" / "corpus"
CACHE: Final = ROOT / ".cache" / "fuzz"
CRASHES: Final = CACHE / "crashes"


def name_of(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def committed(target: str) -> list[Path]:
    """Return a target's committed inputs in the order of their names."""
    folder = CORPUS / target
    return sorted(folder.iterdir()) if folder.is_dir() else []


def found_folder(target: str) -> Path:
    """Return the folder of inputs that runs kept, which is created if absent."""
    return _made(CACHE / "corpus" / target)


def seeds_folder(target: str, seeds: Iterable[bytes]) -> Path:
    """Make a folder of exactly these inputs."""
    folder = _made(CACHE / "seeds" / target)
    names = {path.name for path in write(folder, seeds)}
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()
    return folder


def write(folder: Path, inputs: Iterable[bytes]) -> Iterator[Path]:
    """Write each input as a file named by its content, and return the paths."""
    for data in inputs:
        path = folder / name_of(data)
        if not path.exists():
            path.write_bytes(data)
        yield path


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
