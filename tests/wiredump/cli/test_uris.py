"""A URI is reported where only a path will do: nothing is written beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.wiredump.spark.made_up import capture
from wiredump.cli import main

URI = "s3a://bucket/day/a.pcap"


@pytest.mark.parametrize("arguments", [["show", "--follow", URI]])
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
    assert "is a URI, but a path is needed here: mount" in told
    assert told.count("\n") == 1
    assert os.listdir() == ["a.pcap"]


def test_a_path_may_look_like_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd:/x").mkdir(parents=True)
    Path("odd://x/a.pcap").write_bytes(capture(3))
    with pytest.raises(SystemExit) as ended:
        main(["show", "odd://x/a.pcap", "--no-summary"])
    assert not ended.value.code
