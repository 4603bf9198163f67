"""Every command says in its last line which share of the payload it did not read, and why; and a
command that could judge nothing fails. The captures are made up with the truth about them."""

from __future__ import annotations

import gzip
import importlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kproto.__main__ import cli as kproto_cli
from kspec.cli import commands as kspec_cli
from mockbroker.cli import cli as mockbroker_cli
from tests.captures.test_captures import uncompressed
from tests.captures.worse import HEADER, records_of
from tests.support.toolchain import require_module
from tests.wiredump.cli.test_unread import others
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.fake_streams import start
from tests.wiredump.unread_captures import SAMPLES, Sample, sample
from wiredump.cli import cli
from wiredump.skipped import requests_of, unread_of
from wiredump.sources import open_sources
from wiredump.unread import REASONS, unread_line

__all__ = ["session"]

SAID = " payload bytes were not read: "
NOTHING = "wiredump: nothing could be "
WITHOUT_JAVA = ("show", "table", "audit", "report", "ask", "sql", "extract")
JUDGES = ("errors", "audit", "report", "ask", "extract")

COMMANDS: dict[str, Callable[[list[str], Path], list[str]]] = {
    "show": lambda sources, out: ["show", *sources],
    "errors": lambda sources, out: ["show", *sources, "--errors"],
    "table": lambda sources, out: ["table", *sources, "--out", str(out)],
    "audit": lambda sources, out: ["audit", *sources, "--to", "kafka-3.9"],
    "report": lambda sources, out: ["report", *sources, "--out", str(out)],
    "ask": lambda sources, out: ["ask", "errors", *sources],
    "sql": lambda sources, out: ["sql", *sources, "SELECT count(*) FROM requests"],
    "extract": lambda sources, out: ["extract", *sources, "--out", str(out), "--client-id", "c1"],
}
"""Those that need no Java; ``spark`` has tests of its own."""


def run(command: str, sources: list[Path], out: Path, *more: str) -> Result:
    arguments = COMMANDS[command](list(map(str, sources)), out)
    return CliRunner().invoke(cli, [*arguments, *more], standalone_mode=False)


def last_line(result: Result) -> str:
    """What the command ends with on standard error, as its process would."""
    if isinstance(result.exception, click.ClickException):
        raise result.exception
    if result.exception is not None:
        return f"wiredump: {result.exception}"
    lines: list[str] = result.stderr.splitlines()
    return lines[-1] if lines else ""


def written(each: Sample, folder: Path) -> list[Path]:
    paths = [folder / f"{number}.pcap" for number in range(len(each.parts))]
    for path, part in zip(paths, each.parts, strict=True):
        path.write_bytes(part)
    return paths


def shares(line: str) -> dict[str, float]:
    """The percentages of a line by what they are of."""
    found = re.findall(r"(less than|more than)? ?([\d.]+) % ([^,;]+)", line.partition(SAID)[2])
    return {what: float(number) for _, number, what in found}


def said_of(each: Sample, line: str) -> None:
    """The line states the truth."""
    total = sum(each.unread.values())
    if not total:
        assert SAID not in line
        return
    distinct = each.payload - each.repeated
    assert f" % of {distinct:,}{SAID}" in line
    expected = {
        REASONS[name].share: 100 * size / distinct for name, size in each.unread.items() if size
    }
    found = shares(line)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=0.051)
    assert (f"100 % of {distinct:,}" in line) == (total == distinct)


# ---- which commands -----------------------------------------------------------------------------


def reading(group: click.Command, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The commands that take captures, by their arguments."""
    if isinstance(group, click.Group):
        return {
            each for name in group.commands for each in reading(group.commands[name], (*path, name))
        }
    arguments = [each for each in group.params if isinstance(each, click.Argument)]
    return {path} if any("CAPTURE" in str(each.metavar) for each in arguments) else set()


def test_no_command_is_left_out() -> None:
    """Every command that reads captures is run here, and ``spark`` below."""
    run_here = {(COMMANDS[name]([], Path())[0],) for name in COMMANDS}
    assert reading(cli) == run_here | {("spark",)}
    assert {name for (name,) in run_here} == set(WITHOUT_JAVA)
    for other in (kproto_cli, mockbroker_cli, kspec_cli):
        assert reading(other) == set()


# ---- what they say ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [each.name for each in SAMPLES if not each.rotated])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_last_line(command: str, name: str, tmp_path: Path) -> None:
    each = sample(name)
    result = run(command, written(each, tmp_path), tmp_path / "out")
    line = last_line(result)
    said_of(each, line)
    assert line.startswith(NOTHING) == (command in JUDGES and not each.requests)
    assert SAID not in result.stdout


@pytest.fixture
def spark(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """``wiredump spark`` takes a session without Java."""
    require_module("pyspark")
    module = importlib.import_module("wiredump.spark.session")
    monkeypatch.setattr(module, "start", lambda *_, **__: session)
    monkeypatch.setattr(module, "master_of", lambda _: "none")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", [each.name for each in SAMPLES])
def test_the_last_line_of_spark(name: str, tmp_path: Path) -> None:
    each = sample(name)
    paths = map(str, written(each, tmp_path))
    more = ["--rotated"] if each.rotated else []
    arguments = ["spark", *paths, "--out", str(tmp_path / "out"), "--partitions", "2", *more]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    said_of(each, last_line(result))
    assert ("name the parts in the order" in result.stderr) == each.rotated


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["TLS", "mixed", "whole"])
def test_the_last_line_of_a_stream(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiredump.spark.streaming.Stream.start", start)
    place = tmp_path / "in"
    place.mkdir()
    written(sample(name), place)
    arguments = ["--follow", str(place), "--checkpoint", str(tmp_path / "checkpoint")]
    lines = tmp_path / "progress.jsonl"
    result = CliRunner().invoke(
        cli,
        ["spark", *arguments, "--out", str(tmp_path / "out"), "--end", "--progress", str(lines)],
        standalone_mode=False,
    )
    said_of(sample(name), last_line(result))
    (line,) = lines.read_text().splitlines()
    assert json.loads(line)["files"] == len(list(place.iterdir()))


def test_a_capture_without_tcp_beside_another(tmp_path: Path) -> None:
    """The message about the one ends with the share of the other."""
    paths = written(sample("mixed"), tmp_path)
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(sample("mixed").parts[0][:HEADER])
    empty.write_bytes(empty.read_bytes() + records_of(others())[0])
    line = last_line(run("show", [*paths, empty], tmp_path / "out"))
    assert line.startswith(f"wiredump: {empty}: nothing could be read: its packets have no TCP")
    said_of(sample("mixed"), line)


@pytest.mark.parametrize("command", JUDGES)
def test_a_verdict_on_nothing_fails(command: str, tmp_path: Path) -> None:
    """With a status of its own process; and nothing is written."""
    out = tmp_path / "out"
    out.write_text("good")
    for name in ("TLS", "HTTP", "HTTP on another port", "responses alone", "no payload"):
        result = run(command, written(sample(name), tmp_path), out)
        assert result.exception is not None
        assert "would refuse" not in result.stdout
        assert "No rows" not in result.stdout
    assert out.read_text() == "good"


def test_no_payload_at_all(tmp_path: Path) -> None:
    result = run("audit", written(sample("no payload"), tmp_path), tmp_path / "out")
    assert last_line(result) == f"{NOTHING}judged: the sources have no payload"


def test_questions_about_connections_need_no_request(tmp_path: Path) -> None:
    paths = written(sample("TLS"), tmp_path)
    result = CliRunner().invoke(cli, ["ask", "network", str(paths[0]), "--format", "json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout.splitlines()[0])
    said_of(sample("TLS"), last_line(result))


@pytest.mark.parametrize("port", [8080, 9092])
def test_another_protocol_is_no_incomplete_capture(port: int, tmp_path: Path) -> None:
    name = "HTTP" if port == 9092 else "HTTP on another port"
    result = run("table", written(sample(name), tmp_path), tmp_path / "out")
    assert "incomplete capture" not in result.stderr
    assert "try --port" in result.stderr


def test_rotated_parts_in_the_wrong_order(tmp_path: Path) -> None:
    each = sample("rotated parts in the wrong order")
    paths = written(each, tmp_path)
    result = run("table", paths, tmp_path / "out", "--rotated")
    said_of(each, last_line(result))
    assert "name the parts in the order of their times" in result.stderr
    right = run("table", paths[::-1], tmp_path / "right", "--rotated")
    assert right.stderr == ""


def test_up_to_a_limit(tmp_path: Path) -> None:
    """There is no verdict on what was not looked at."""
    paths = written(sample("TLS"), tmp_path)
    result = run("errors", paths, tmp_path / "out", "--limit", "1")
    assert result.exception is None
    said_of(sample("TLS"), last_line(result))


def test_a_capture_that_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is interrupted, what was read so far has been counted."""

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    for name in ("TLS", "mixed"):
        result = run("show", written(sample(name), tmp_path), tmp_path / "out", "--follow")
        assert result.exception is None
        said_of(sample(name), last_line(result))


@pytest.mark.parametrize("name", ["TLS", "mixed", "whole", "GSSAPI"])
@pytest.mark.parametrize("command", ["audit", "report", "ask", "sql"])
def test_a_folder_of_tables_says_the_same(command: str, name: str, tmp_path: Path) -> None:
    each, tables = sample(name), tmp_path / "tables"
    run("table", written(each, tmp_path), tables)
    line = last_line(run(command, [tables], tmp_path / "out"))
    said_of(each, line)
    assert line.startswith(NOTHING) == (command in JUDGES and not each.requests)


@pytest.mark.slow
def test_the_report_says_so(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    run("report", written(sample("mixed"), tmp_path), out)
    assert SAID in out.read_text()


def test_the_documentation_has_the_table_of_reasons() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "wiredump.md"
    rows = [
        f"| {reason.share} | `unread: {name}` | {reason.meaning} "
        f"| {f'`{reason.option}`' if reason.option else ''} |"
        for name, reason in REASONS.items()
    ]
    assert "\n".join(rows) in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("unread", "payload", "text"),
    [
        ({}, 10, ""),
        ({"tls": 10}, 10, "100 % of 10 payload bytes were not read: 100 % TLS without keys"),
        ({"tls": 99_999}, 100_000, "more than 99.9 % of 100,000 payload bytes"),
        ({"tls": 1}, 100_000, "less than 0.1 % of 100,000 payload bytes"),
        ({"malformed": 1, "tls": 3}, 8, "50.0 % of 8 payload bytes were not read: 37.5 % TLS"),
        ({"tls": 1, "not-kafka": 1}, 2, "; try --keylog or --port"),
    ],
)
def test_how_shares_are_written(unread: dict[str, int], payload: int, text: str) -> None:
    assert text in unread_line(unread, payload)


# ---- journals -----------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal whose last line was not written to its end."""
    lines = [
        {"sequence": 1, "timestamp_ns": 1, "broker_id": 1, "connection_id": 1, "peer": "a:1",
         "direction": "event", "event": "connected"},
        {"sequence": 2, "timestamp_ns": 2, "broker_id": 1, "connection_id": 1, "peer": "a:1",
         "direction": "request", "api_key": 18, "api_version": 0, "correlation_id": 1,
         "raw": "AAAACgASAAAAAAAB//8="},
    ]  # fmt: skip
    path = tmp_path / "journal.jsonl"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text + '{"sequence": 3, "timesta')
    return path


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "extract"])
def test_a_torn_journal_is_a_truncated_file(command: str, journal: Path, tmp_path: Path) -> None:
    result = run(command, [journal], tmp_path / "out")
    assert result.exception is None
    assert "incomplete capture: 1 truncated file (" in result.stderr


def test_a_torn_journal_in_gzip(journal: Path, tmp_path: Path) -> None:
    packed = tmp_path / "journal.gz"
    packed.write_bytes(gzip.compress(journal.read_bytes() * 1)[:-4])
    result = run("show", [packed], tmp_path / "out")
    assert "incomplete capture: 1 truncated file (" in result.stderr
    packed.write_bytes(gzip.compress(journal.read_bytes()) + b"no gzip")
    result = run("show", [packed], tmp_path / "out")
    assert "incomplete capture: 1 damaged place (" in result.stderr


def test_a_whole_journal_is_not(journal: Path, tmp_path: Path) -> None:
    journal.write_text(journal.read_text().rpartition("\n")[0] + "\n")
    assert run("show", [journal], tmp_path / "out").stderr == ""


def test_a_journal_without_a_request(journal: Path, tmp_path: Path) -> None:
    journal.write_text(journal.read_text().partition("\n")[0] + "\n")
    result = run("audit", [journal], tmp_path / "out")
    assert last_line(result).startswith(NOTHING)


def test_a_capture_of_brokers_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "whole.pcap"
    path.write_bytes(uncompressed("kafka-4.4.0-admin"))
    source = open_sources([str(path)])
    assert sum(1 for _ in source)
    assert unread_of(source.account) == {}
    assert requests_of(source.account)
