"""A target's committed corpus: few inputs, that reach what all known ones do, in few bytes.

libFuzzer merges what runs kept, the seeds and what is committed. Where that is more than a target
may commit, inputs are taken from the smallest on, those of the target's ``seeds`` first: the rest
stays in the cache, and comes again in longer runs.
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
    """Rewrites the folder; returns how many inputs reach everything, and what was committed."""
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
