"""Questions about tables in an object store, which Spark reads by its own client."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.full import drawn
from tests.support.maven import artifact, with_dependencies
from tests.support.object_store import Bucket
from tests.support.toolchain import require, require_module
from tests.wiredump.questions.operations import tables_of_operations
from tests.wiredump.spark.asking import asked
from wiredump.questions.database import FolderTables
from wiredump.questions.saved import questions

ROOT = Path(__file__).parents[3]
SDK = ("s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
"""Without the bundle of all of them, which is forty times as large."""
CLIENT = [
    *((f"software.amazon.awssdk:{name}", "2.35.4") for name in SDK),
    ("software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3", "1.3.1"),
]


@pytest.mark.slow
@pytest.mark.java
def test_questions_about_an_object_store(tmp_path: Path, bucket: Bucket) -> None:
    """Of Parquet, by the client for S3: those of DuckDB about the same
    files on a disk."""
    require("java", "maven")
    require_module("pyspark")
    names = drawn("questions about an object store", sorted(questions()), 5)
    local = tables_of_operations(tmp_path)
    for file in Path(local).rglob("*"):
        if file.is_file():
            bucket.put(f"lake/{file.relative_to(local)}", file.read_bytes())
    jars = [artifact("org.apache.hadoop:hadoop-aws", "3.5.0"), *with_dependencies(CLIENT)]
    where = f"s3a://{bucket.name}/lake"
    done = subprocess.run(
        [sys.executable, "-m", "tests.wiredump.spark.asking", ",".join(map(str, jars)),
         bucket.address, where, ",".join(names)],
        cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == asked(FolderTables(local), names)
