"""A Kafka topic of frames, read by Spark's own connector, has the tables of its journal.

The connector is that of Spark 4.2, the newest that was published in November 2026; the Spark that
reads is the one that is installed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from mockbroker.running.threaded import ThreadedCluster
from tests.support.maven import artifacts
from tests.support.toolchain import require, require_module
from tests.wiredump.sources.test_opening import journal, talk
from tests.wiredump.spark.pipeline import single
from wiredump.questions.answers import answer
from wiredump.questions.database import FolderTables
from wiredump.questions.saved import question

ROOT = Path(__file__).parents[3]
MIRROR = ROOT / "docs/how-to/recipes/journal_to_topic.py"
PROGRAM = Path(__file__).with_name("topic.py")
CONNECTOR = (
    ("org.apache.spark:spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark:spark-token-provider-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.kafka:kafka-clients", "3.9.2"),
    ("org.apache.commons:commons-pool2", "2.13.1"),
)
TABLES = ("frames", "requests", "bodies", "negotiations")


def run(program: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def mixed_journal(rng: random.Random) -> str:
    """Frames of five connections to two brokers, mixed."""
    lines = {number: list(journal(talk(number, 9)).splitlines()) for number in range(5)}
    text = ""
    for sequence in range(1, sum(map(len, lines.values())) + 1):
        number = rng.choice([each for each, left in lines.items() if left])
        entry = json.loads(lines[number].pop(0))
        entry |= {"sequence": sequence, "timestamp_ns": 1_700_000_000_000_000_000 + sequence}
        text += json.dumps({**entry, "broker_id": number % 2, "connection_id": number}) + "\n"
    return text


@pytest.mark.slow
@pytest.mark.java
def test_the_tables_of_a_mirrored_journal(tmp_path: Path, rng: random.Random) -> None:
    """Rows of four tables, texts of the functions, and the answer to a question."""
    require("java", "maven")
    for name in ("pyspark", "confluent_kafka", "duckdb"):
        require_module(name)
    path = tmp_path / "journal.jsonl"
    path.write_text(mixed_journal(rng))
    expected = single([str(path)], tmp_path / "tables", tables=TABLES)
    jars = ",".join(map(str, artifacts(CONNECTOR)))
    with ThreadedCluster(brokers=1, topics=["frames:2:1"]) as mock:
        run(MIRROR, str(path), mock.bootstrap, "frames")
        found = json.loads(run(PROGRAM, jars, mock.bootstrap, "frames").splitlines()[-1])
    for name in TABLES:
        assert found[name] == expected[name], name
    assert len(found["requests"]) >= 30
    local = FolderTables(str(tmp_path / "tables"))
    texts = answer(local, "SELECT header, body FROM bodies ORDER BY ALL").rows
    assert [tuple(row) for row in found["decoded"]] == texts
    latencies = answer(local, question("slow-apis").query).rows
    assert [tuple(row) for row in found["slow-apis"]] == latencies
