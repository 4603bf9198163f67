"""``wiredump show`` as a command: what its options choose, how it ends."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from kproto.cli.run import run
from kproto.errors import KprotoError
from tests.wiredump.commands import wiredump
from tests.wiredump.show import examples
from wiredump.cli import cli
from wiredump.model import Item

EVERYTHING = (
    examples.FALLBACK
    + examples.HELLO
    + examples.REFUSED
    + examples.PRODUCE
    + examples.PLAIN
    + examples.UNANSWERED
)


class Source(list[Item]):
    account: ClassVar = {"frames": 5}
    unread: ClassVar[dict[str, str]] = {}
    connections: ClassVar[dict[int, Any]] = {}


class Growing:
    """Somebody presses Ctrl-C while it waits for more. Raised here, not sent: another thread of
    this process may take a signal, and then it comes too late."""

    account: ClassVar = {"frames": 5}
    unread: ClassVar[dict[str, str]] = {}
    connections: ClassVar[dict[int, Any]] = {}

    def __iter__(self) -> Iterator[Item]:
        yield examples.listen(examples.FALLBACK)[0]
        raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(paths, *, codec, follow, **others):
        if paths == ("bad",):
            raise KprotoError("bad is no capture")
        if paths == ("growing",):
            return Growing()
        assert paths == ("a.pcap",)
        assert codec.name == "auto"
        return Source(examples.listen(EVERYTHING))

    monkeypatch.setattr("wiredump.cli.show.open_sources", opened)


def test_lines_then_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = wiredump(capsys, "show", "a.pcap")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == 7 + 1 + 7 + 3
    assert lines[0].startswith("0.000000 c0 kafka-python 3.0.12 (acc) ")
    assert lines[-1] == "bytes: frames 5"
    _, alone, _ = wiredump(capsys, "show", "a.pcap", "--no-summary")
    assert alone.splitlines() == lines[:7]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("--api", "ApiVersions", "--api", "0"), [1, 2, 6]),
        (("--errors",), [1, 5, 10, None]),
        (("--client-id", "acc", "--software", "kafka-python"), [1, 2, 5, 6, 7]),
        (("--connection", "0", "--min-latency", "1ms"), [1, 2, 5, 7]),
        (("--from", "0.004", "--to", "0.006"), [5, 6]),
        (("--from", "1970-01-01T00:00:00.009"), [10, None]),
        (("--grep", "foo"), [5]),
        (("--limit", "2"), [1, 2]),
    ],
)
def test_filters(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], kept: list[int | None]
) -> None:
    code, out, _ = wiredump(capsys, "show", "a.pcap", "--json", "--no-summary", *arguments)
    records = [json.loads(line) for line in out.splitlines()]
    assert (code, [record.get("correlation_id") for record in records]) == (0, kept)


def test_json_is_an_object_a_line_and_the_summary_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = wiredump(capsys, "show", "a.pcap", "--json", "--hex", "--api", "45")
    refused, summary = map(json.loads, out.splitlines())
    assert refused["errors"][0] == {
        "path": "responses[0].partitions[0].errorCode",
        "where": "foo-0",
        "code": 85,
        "name": "NO_REASSIGNMENT_IN_PROGRESS",
        "message": "None is in progress.",
    }
    rows = refused["request"]["fields"]
    assert {"offset": 0, "length": 4, "path": "size", "type": "int32", "value": 50} in rows
    assert summary["type"] == "summary"
    assert summary["account"] == {"frames": 5}


def test_bodies_and_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = wiredump(capsys, "show", "a.pcap", "--bodies", "--api", "45")
    assert '    request {\n      "timeoutMs": 60000,\n' in out
    _, out, _ = wiredump(capsys, "show", "a.pcap", "--hex", "--api", "36")
    masked = "    18  xx xx xx xx xx xx xx xx xx xx xx xx… auth_bytes bytes [redacted]\n"
    assert masked in out
    _, out, _ = wiredump(capsys, "show", "a.pcap", "--hex", "--all", "--secrets", "--api", "36")
    assert "xx xx" not in out
    assert examples.PASSWORD[:5].hex(" ") in out


def test_follow_goes_on_until_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = wiredump(capsys, "show", "growing", "--follow")
    assert (code, err) == (0, "")
    assert "ApiVersions v4" in out
    assert out.endswith("1 request on 1 connection\n")
    code, out, _ = wiredump(capsys, "show", "growing")
    assert code == 130
    assert "1 request on 1 connection" in out


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((), 2, "Missing command"),
        (("show",), 2, "Missing argument"),
        (("show", "bad"), 1, "bad is no capture"),
        (("show", "a.pcap", "--api", "Nothing"), 1, "unknown API 'Nothing'"),
        (("show", "a.pcap", "--min-latency", "5q"), 2, "'5q' is not a duration"),
        (("show", "a.pcap", "--min-latency", "5"), 2, "'5' has no unit: use 5ms, 5s or 5m"),
        (("show", "a.pcap", "--from", "soon"), 2, "'soon' is not a time"),
        (("show", "a.pcap", "--dialect", "kip-1"), 1, "no dialect 'kip-1'"),
        (("show", "a.pcap", "--limit", "0"), 2, "0 is not in the range"),
    ],
)
def test_errors_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, text: str
) -> None:
    ended, out, err = wiredump(capsys, *arguments)
    assert (ended, out) == (code, "")
    assert text in err
    assert err.count("\n") == 1


def test_a_reader_that_has_enough(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``wiredump show ... | head``, whether lines are coloured or not."""

    class Closed:
        encoding = "utf-8"

        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

        def flush(self) -> None: ...
        def isatty(self) -> bool:
            return False

        def fileno(self) -> int:
            raise OSError

    for colour in ("", "1"):
        with monkeypatch.context() as patched:
            patched.setenv("FORCE_COLOR", colour)
            patched.setattr("sys.stdout", Closed())
            with pytest.raises(SystemExit) as ended:
                run(cli, "wiredump", ["show", "a.pcap"])
            assert ended.value.code == 0
    assert capsys.readouterr().err == ""


def test_colours(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    _, out, _ = wiredump(capsys, "show", "a.pcap", "--errors")
    assert "\x1b[1;31mNO_REASSIGNMENT_IN_PROGRESS\x1b[0m" in out
    assert "\x1b[31m\r" not in out
