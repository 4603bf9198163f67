"""A URI is told of as such, wherever a path is wanted: nothing is written beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.wiredump.spark.made_up import capture
from wiredump.cli import main

URI = "s3a://bucket/day/a.pcap"


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", URI],
        ["table", URI, "--out", "tables"],
        ["table", URI, "--out", "tables", "--jobs", "2"],
        ["table", "a.pcap", "--out", URI],
        ["extract", URI, "--out", "one.jsonl", "--connection", "0"],
        ["audit", URI, "--to", "kafka-4.1"],
        ["report", URI, "--out", "page.html"],
        ["spark", URI, "--out", "tables"],
        ["spark", "a.pcap", "--out", URI],
        ["spark", "--follow", URI, "--checkpoint", "c", "--out", "tables"],
        ["show", "a.pcap", "--keylog", "hdfs://host/keys.log"],
    ],
)
def test_uris(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("a.pcap").write_bytes(capture(3))
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (1, 2)
    told = capsys.readouterr().err
    assert "is a URI, but a path is needed: mount" in told
    assert told.count("\n") == 1
    assert os.listdir() == ["a.pcap"]


def test_a_path_may_look_like_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd:/x").mkdir(parents=True)
    Path("odd://x/a.pcap").write_bytes(capture(3))
    with pytest.raises(SystemExit) as ended:
        main(["show", "odd://x/a.pcap", "--no-summary"])
    assert not ended.value.code
