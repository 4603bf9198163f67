"""A Kafka topic of frames, read by Spark's own connector, has the tables of its journal."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mockbroker.running.threaded import ThreadedCluster
from tests.support.toolchain import require, require_module
from tests.wiredump.sources.test_opening import journal, talk
from tests.wiredump.spark.pipeline import single
from wiredump.questions.answers import answer
from wiredump.questions.database import FolderTables
from wiredump.questions.saved import question
from wiredump.rows.schema import TABLES

ROOT = Path(__file__).parents[3]
MIRROR = ROOT / "docs/how-to/recipes/journal_to_topic.py"
DECODED = """
SELECT decoded.header, decoded.body FROM (
  SELECT decode_request(frame) AS decoded FROM frames_in_topic WHERE direction = 'request'
  UNION ALL
  SELECT decode_response(frame, api_key, api_version) FROM frames_in_topic
  WHERE direction = 'response'
)
ORDER BY ALL"""


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
def test_the_tables_of_a_mirrored_journal(spark: Any, tmp_path: Path, rng: random.Random) -> None:
    """Rows of four tables, texts of the functions, and the answer to a question."""
    require("maven")
    for name in ("confluent_kafka", "duckdb"):
        require_module(name)
    from wiredump.spark import register
    from wiredump.spark.topics import OF_FRAMES, frames_of, table_of_frames

    path = tmp_path / "journal.jsonl"
    path.write_text(mixed_journal(rng))
    expected = single([str(path)], tmp_path / "tables", tables=OF_FRAMES)
    assert len(expected["requests"]) >= 30
    with ThreadedCluster(brokers=1, topics=["frames:2:1"]) as mock:
        mirror = [sys.executable, str(MIRROR), str(path), mock.bootstrap, "frames"]
        subprocess.run(mirror, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        options = {
            "kafka.bootstrap.servers": mock.bootstrap, "subscribe": "frames",
            "includeHeaders": "true", "startingOffsets": "earliest",
        }  # fmt: skip
        frames = frames_of(spark.read.format("kafka").options(**options).load()).cache()
        assert frames.count() > 0
    tables = {name: table_of_frames(frames, name).cache() for name in OF_FRAMES}
    for name, table in tables.items():
        names = [each.name for each in TABLES[name].columns]
        rows = table.select(names).collect()
        assert sorted(repr(row.asDict()) for row in rows) == expected[name], name
    registered, local = register(spark, tables), FolderTables(str(tmp_path / "tables"))
    frames.createOrReplaceTempView("frames_in_topic")
    texts = answer(local, "SELECT header, body FROM bodies ORDER BY ALL").rows
    assert answer(registered, DECODED).rows == texts
    latencies = question("slow-apis").query
    assert answer(registered, latencies).rows == answer(local, latencies).rows
    for each in (frames, *tables.values()):
        each.unpersist()
