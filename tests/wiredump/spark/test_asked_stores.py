"""Questions about tables in an object store, which Spark reads by its own client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.full import drawn
from tests.support.object_store import Bucket
from tests.support.toolchain import require
from tests.wiredump.questions.operations import tables_of_operations
from wiredump.questions.answers import answer
from wiredump.questions.database import FolderTables
from wiredump.questions.saved import questions


@pytest.mark.slow
@pytest.mark.java
def test_questions_about_an_object_store(spark: Any, tmp_path: Path, bucket: Bucket) -> None:
    """Of Parquet, by the client for S3: those of DuckDB about the same files on a disk."""
    require("maven")
    from wiredump.spark import register

    local = tables_of_operations(tmp_path)
    for file in Path(local).rglob("*"):
        if file.is_file():
            bucket.put(f"lake/{file.relative_to(local)}", file.read_bytes())
    client = {
        "endpoint": f"http://{bucket.address}", "endpoint.region": "us-east-1",
        "path.style.access": "true", "connection.ssl.enabled": "false",
        "access.key": "testing", "secret.key": "testing", "input.stream.type": "classic",
    }  # fmt: skip
    for name, value in client.items():
        spark.sparkContext._jsc.hadoopConfiguration().set(f"fs.s3a.{name}", value)
    tables = register(spark, f"s3a://{bucket.name}/lake")
    tables.require_schema()
    for name in drawn("questions about an object store", sorted(questions()), 3):
        query = questions()[name].query
        expected, found = answer(FolderTables(local), query), answer(tables, query)
        assert (found.columns, found.rows) == (expected.columns, expected.rows), name
