"""What tests of captures share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.class_data import SparkClassData
from tests.support.object_store import Bucket, ObjectStore, object_store
from tests.wiredump.quickly import require_quick


@pytest.fixture
def extension() -> None:
    """For tests of nothing but the extension, or of both ways beside each other."""
    require_quick()


@pytest.fixture
def every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """``--jobs`` starts so many processes, however small the capture."""
    monkeypatch.setattr("wiredump.tables.useful_processes.useful_processes", lambda _, most: most)


@pytest.fixture(scope="session", autouse=True)
def spark_class_data() -> SparkClassData:
    """Spark's drivers, also those of commands, start with an archive where there is one."""
    return SparkClassData()


@pytest.fixture(scope="session")
def store() -> Iterator[ObjectStore]:
    """A server that speaks S3."""
    with object_store() as running:
        yield running


@pytest.fixture
def bucket(store: ObjectStore) -> Bucket:
    """An empty bucket."""
    return store.bucket()
