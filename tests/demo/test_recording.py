"""What the demo writes down: one capture of all its clusters, each apart from the others."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from demo.__main__ import main
from demo.wire import PROFILES
from tests.support.toolchain import require_module
from wiredump.model import Anomaly, Exchange
from wiredump.sources import open_sources
from wiredump.tables.table_rows import TableRows


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["pcapng", "jsonl"])
def test_what_was_said_is_in_one_file(tmp_path: Path, ending: str) -> None:
    require_module("kafka")
    path = tmp_path / f"demo.{ending}"
    done = CliRunner().invoke(main, ["--client", "kafka-python", "--quiet", "--journal", str(path)])
    assert done.exit_code == 0, done.output
    source, rows = open_sources([str(path)]), TableRows(tables=("reassignments",))
    items = list(source)
    found = [row for item in items for row in rows.add(item)]
    found += rows.end(source.connections, [], {})
    kinds = {item.kind for item in items if isinstance(item, Anomaly)}
    assert not kinds & {"unframed", "gap", "cut", "unmatched", "unanswered", "not-kafka"}
    assert len({each.id for each in source.connections.values()}) == len(source.connections)
    apis = [item.api_key for item in items if isinstance(item, Exchange)]
    # A refused version on the old release alone, and the story on both.
    assert apis.count(45) >= 2 * len(PROFILES)
    assert {18, 3, 43, 45, 46} <= set(apis)
    assert len(found) >= 2 * len(PROFILES)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--journal", str(tmp_path / "demo.pcap")])
    assert done.exit_code == 2
    assert "the extension must be .jsonl or .pcapng" in done.output
