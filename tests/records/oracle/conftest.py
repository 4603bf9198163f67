"""The running Java programs, shared by the tests here."""

from collections.abc import Iterator, Mapping

import pytest

from tests.records.oracle.java_records import RELEASES, JavaRecords
from tests.support.toolchain import require


@pytest.fixture(scope="session")
def java_records() -> Iterator[Mapping[str, JavaRecords]]:
    """One program a release. Skips (fails where required) without Java or Maven."""
    require("java", "maven")
    started: dict[str, JavaRecords] = {}
    try:
        for release in RELEASES:
            started[release] = JavaRecords(release)
        yield started
    finally:
        for java in started.values():
            java.__exit__()


@pytest.fixture(params=RELEASES)
def java(java_records: Mapping[str, JavaRecords], request: pytest.FixtureRequest) -> JavaRecords:
    return java_records[request.param]
