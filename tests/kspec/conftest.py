"""Each case file is parsed once a process: a case is immutable, and parsing YAML in Python is slow.
No module parses cases when it is imported, which every process does to collect its tests."""

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
