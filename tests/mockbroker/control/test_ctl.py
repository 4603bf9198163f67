"""``mockbroker ctl``: clusters, journal, frames, streams and scenarios."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.mockbroker.control.test_command_line import PATIENCE, ROOT, ask, ctl, run_here, serving
from tests.support.requests import request_of

LIST = request_of("ListPartitionReassignments", topics=None)


@pytest.mark.slow
def test_clusters_journals_frames_and_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    with serving("--brokers", "1", "--topic", "foo:1:1", "--control", "127.0.0.1:0") as (_, ready):
        url = ready["control"]

        def first(*words: str) -> str:
            code, out, err = ctl(capsys, url, *words)
            assert (code, err) == (0, ""), words
            return out

        made = json.loads(
            first("cluster", "add", "brokers=2", "topics=bar:1:2", "topics=far=2,1",
                 "profile=kafka-2.4", "reply35=true", '{"clock": "manual"}', "--json")
        )  # fmt: skip
        assert (made["id"], list(made["brokers"]), made["clock"]) == ("2", ["1", "2"], "manual")
        assert first("cluster", "add", "brokers=1").split()[:3] == ["3", "kafka-4.4", "1"]
        assert [line.split()[0] for line in first("cluster", "list").splitlines()] == [
            "1",
            "2",
            "3",
        ]
        assert json.loads(first("cluster", "list", "--json"))["clusters"][1] == made
        assert first("cluster", "remove", "3") == ""

        def second(*words: str) -> str:
            assert run_here(["ctl", "--cluster", "2", url, *words]) == 0
            return capsys.readouterr().out

        second("fault", "add", "name=moved", "api=46", "error=NOT_CONTROLLER")
        assert ask(made["brokers"]["1"], LIST, 0).error_code == 41
        assert "moved: 1 hits" in second("fault", "list")
        assert first("fault", "list") == ""
        assert sorted(json.loads(second("state", "--json"))["topics"]) == ["bar", "far"]
        (request,) = json.loads(
            second("journal", "--api", "46", "--direction", "request", "--json")
        )
        assert request["api"] == "ListPartitionReassignments"
        assert "ListPartitionReassignments" in second("journal", "--last", "1", "--api", "46")
        assert "request_api_key 46" in second("frame", str(request["sequence"]))
        assert json.loads(second("frame", "1", "--json"))["hex"] == ""
        assert first("journal") == ""

        assert "cancel-is-a-revert" in first("scenario", "list")
        assert "claims checked" in first("scenario", "run", "cancel-is-a-revert")
        assert json.loads(first("scenario", "run", "cancel-is-a-revert", "--json"))["ok"] is True
        for words in (
            ["scenario", "run", "nope"], ["cluster", "remove", "9"],
            ["cluster", "add", "brokers=0"], ["frame", "999"],
        ):  # fmt: skip
            code, out, err = ctl(capsys, url, *words)
            assert (code, out, err.count("\n")) == (1, "", 1), words
        assert ctl(capsys, url, "cluster", "add", "brokers")[0] == 2
        strict = '{"strict_faults": true, "faults": [{"api": 46, "error": 41}]}'
        labels = 'labels={"test": "mine"}'
        assert first("cluster", "add", strict, labels, "brokers=1").endswith("  test=mine\n")
        code, out, err = ctl(capsys, url, "cluster", "remove", "4")
        assert (code, out) == (1, "")
        assert "no request has hit: fault-1 (api=46 error=41)" in err
        assert first("cluster", "remove", "1") == ""


@pytest.mark.slow
def test_ctl_counts_dropped_entries(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--brokers", "1", "--topic", "foo:1:1", "--journal-entries", "3"]
    with serving(*options, "--control", "127.0.0.1:0") as (_, ready):
        url, address = ready["control"], ready["brokers"]["1"]
        for _ in range(4):
            ask(address, LIST, 0)
        code, out, err = ctl(capsys, url, "journal", "--json")
        kept = json.loads(out)
        assert (code, len(kept)) == (0, 3)
        dropped = kept[0]["sequence"] - 1
        assert dropped > 0
        assert err.startswith("mockbroker: the journal has dropped its oldest ")
        assert f" {dropped} entries" in err
        assert err.count("\n") == 1
        code, out, again = ctl(capsys, url, "journal", "--last", "1")
        assert (code, out.count("\n")) == (0, 1)
        assert "has dropped its oldest" in again


def follow(url: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mockbroker", "ctl", url, *words],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


@pytest.mark.slow
def test_following(capsys: pytest.CaptureFixture[str]) -> None:
    with serving("--brokers", "2", "--topic", "foo=1,2", "--control", "127.0.0.1:0") as (
        process,
        ready,
    ):
        url, address = ready["control"], ready["brokers"]["1"]
        ask(address, request_of("Metadata", topics=[]), 9)
        ask(address, LIST, 0)
        entries = follow(
            url, "journal", "--direction", "request", "--last", "1", "--follow", "--json"
        )
        actions = follow(url, "log", "--follow")
        try:
            assert entries.stdout is not None
            assert actions.stdout is not None

            def entry() -> dict[str, Any]:
                line: dict[str, Any] = json.loads(entries.stdout.readline())  # type: ignore[union-attr]
                return line

            assert entry()["api_key"] == 46
            ask(address, request_of("Metadata", topics=[]), 9)
            assert entry()["api_key"] == 3
            assert ctl(capsys, url, "leave-isr", "foo-0", "2")[0] == 0
            while "leave_isr" not in actions.stdout.readline():
                pass
            process.terminate()
            # The server ends the streams, and so they end.
            assert (entries.wait(PATIENCE), actions.wait(PATIENCE)) == (0, 0)
        finally:
            for each in (entries, actions):
                each.kill()
                each.communicate(timeout=PATIENCE)


@pytest.mark.parametrize(
    "words", [("join-isr",), ("znode", "set"), ("fault", "add"), ("journal",), ("cluster", "list")]
)
def test_help_works_with_any_url(words, capsys):
    """``ctl URL COMMAND --help``, as in usage lines, works without a server."""
    code, out, err = ctl(capsys, "URL", *words, "--help")
    assert (code, err) == (0, "")
    assert out.startswith("Usage: ")


def test_an_invalid_url_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ctl(capsys, "URL", "state")
    assert code == 2
    assert "'URL' is not a control URL; use http://HOST:PORT" in err
