"""Minimise a target's committed corpus: few, small inputs with the coverage of all known ones.

libFuzzer merges kept inputs, the seeds and the committed corpus. If the result exceeds the size
limit, the smallest inputs are committed, those of the target's ``seeds`` first. The others stay in
the cache, for longer runs.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from fuzz import guides
from fuzz.inputs import CACHE, CORPUS, name_of, write
from fuzz.targets import Target, load

__all__ = ["minimise_corpus"]


def minimise_corpus(target: Target, guide: str, most: int) -> tuple[int, str]:
    """Rewrite the folder. Return how many inputs have the full coverage, and what was committed."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as place:
        guides.merge(target, guide, Path(place))
        reaching = [path.read_bytes() for path in Path(place).iterdir()]
    seeds = {name_of(seed) for seed in load(target).seeds()}
    reaching.sort(key=lambda data: (name_of(data) not in seeds, len(data), data))
    kept, size = [], 0
    for data in reaching:
        if size + len(data) <= most:
            kept.append(data)
            size += len(data)
    folder = CORPUS / target.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    list(write(folder, kept))
    return len(reaching), f"{len(kept)} of {size} bytes"
