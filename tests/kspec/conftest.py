"""Each case file is parsed once a process: a case cannot be changed, and YAML in Python is slow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from kspec.runner import files


@pytest.fixture(scope="session", autouse=True)
def _parsed_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "parse_case", cache(files.parse_case))
        yield
