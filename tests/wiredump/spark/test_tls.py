"""TLS on Spark: with the same key log, the tables of one process."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.wiredump.spark.pipeline import LOCAL, load
from tests.wiredump.talk import say
from tests.wiredump.tls.recorded import (
    capture_of,
    client_context,
    in_memory,
    packets_of,
    server_context,
)
from wiredump.rows.schema import TABLES
from wiredump.sources import open_sources
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.tables.making import make_tables
from wiredump.tables.table_rows import TableRows

pytestmark = [pytest.mark.slow, pytest.mark.java]


def test_a_key_log(spark, tmp_path: Path, rng: random.Random) -> None:
    log, capture = tmp_path / "keys.log", tmp_path / "tls.pcap"
    said = [say(rng, number) for number in range(20)]
    passages, _ = in_memory(said, client_context(log), server_context())
    packets = packets_of(passages, 1460)
    del packets[len(packets) // 2]
    capture.write_bytes(capture_of(packets))
    source = open_sources([str(capture)], keylog=str(log))
    made = make_tables(source, TableRows(), str(tmp_path / "one"), tuple(TABLES))
    assert made.account["tls"]
    options = Options(
        out=str(tmp_path / "many"), paths={0: str(capture)}, tables=LOCAL, keylog=str(log)
    )
    Job(options=options, split_bytes=20_000, partitions=2).run(spark)
    for names in (LOCAL, ("account",)):
        assert load(tmp_path / "many", names) == load(tmp_path / "one", names)
