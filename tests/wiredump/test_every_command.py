"""What every command says of captures in which several things happened at a time, beside the truth
about them, and beside each other.

A second point of capture and a tunnel change nothing that a question is about: the answers are
those to the packets of the first point alone, but for the connections in the network.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from kproto.safe_text import printable_lines
from tests.support.full import either
from tests.support.seeds import generator
from tests.support.toolchain import require_module
from tests.wiredump.composed_captures import Composed, composed
from tests.wiredump.known_captures import Fact
from tests.wiredump.test_known_captures import facts
from wiredump.cli import cli
from wiredump.readers.share import Share
from wiredump.skipped import unread_of
from wiredump.sources import open_sources
from wiredump.tables import jobs

OF_THE_WIRE = frozenset({"hops", "network", "attempts"})
"""Questions about connections, of which two points of capture show more."""


def _seeds(name: str, full: int, sampled: int) -> list[int]:
    rng = generator(f"composed captures, {name}")
    return [rng.randrange(1 << 30) for _ in range(either(full, sampled))]


# ---- what is read ---------------------------------------------------------------------------


def check_exchanges(made: Composed, found: Counter[Fact]) -> tuple[int, int]:
    """No exchange is made up, and none is lost that is there. A response of which a part is there
    may be found. Of connections from the middle, return how many exchanges are there, and how many
    are lost or made up."""
    parts = Counter(fact._replace(answered=False) for fact in (made.truth - made.sure).elements())
    wrong = found - (made.truth + parts)
    wrong += Counter(
        fact for fact in (made.sure - found).elements()
        if fact.answered or not found[fact._replace(answered=True)]
    )  # fmt: skip
    assert {fact.port for fact in wrong} <= made.middle, (made.what, wrong)
    return sum(fact.port in made.middle for fact in made.sure.elements()), wrong.total()


def check_reading(made: Composed, capture: bytes, copied: int, folder: Path) -> tuple[int, int]:
    path = folder / "a.pcap"
    path.write_bytes(capture)
    sources = open_sources([str(path)])
    found = check_exchanges(made, facts(sources))
    account = sources.account
    unread = unread_of(account)
    late = unread.get("out-of-window", 0)  # before the first byte, and each copy of it
    assert account["payload"] == made.payload + copied, made.what
    assert late or account.get("copies", 0) == copied, made.what
    assert sum(unread.values()) - late <= made.payload - made.readable, (made.what, unread)
    ends = Counter(
        (each.client, each.broker, each.proxied_client) for each in sources.connections.values()
    )
    if not made.is_whole:
        assert {each[:2] for each in ends} <= {each[:2] for each in made.ends}, made.what
        return found
    assert ends == made.ends, made.what
    assert account["retransmitted"] == made.payload - made.distinct, made.what
    assert account["missing"] == 0, made.what
    assert unread.keys() <= {"not-kafka"}, made.what  # what some hosts send before Kafka
    return found


def test_what_is_read_is_the_truth(tmp_path: Path) -> None:
    """At one point of capture, and with copies and tunnels. From the middle of a connection,
    evidence finds nearly all exchanges."""
    there = wrong = 0
    for seed in _seeds("reading", 5000, 40):
        made = composed(seed)
        ways = [(made.plain, 0)]
        if not made.twins:
            ways.append((made.capture, made.copied))
        for capture, copied in ways:
            found = check_reading(made, capture, copied, tmp_path)
            there, wrong = there + found[0], wrong + found[1]
    assert there > 0
    assert 20 * wrong <= there, (wrong, there)


# ---- what commands say ----------------------------------------------------------------------


def _run(*arguments: object, codes: tuple[int, ...] = (0,)) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in codes, result.output
    return result


def _lines(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _run(*arguments).stdout.splitlines()]


def _answers(path: Path) -> list[dict[str, Any]]:
    """Return the answers to all questions."""
    return _lines("ask", path, "--format", "json")


def _without(answers: list[dict[str, Any]], skipped: frozenset[str]) -> list[dict[str, Any]]:
    return [each for each in answers if each["question"] not in skipped]


def _ranked(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers without those about connections, and without ranks."""
    return [
        each | {"rank": None} for each in _without(answers, OF_THE_WIRE)
        if each.get("command") != "wiredump ask network FILE"
    ]  # fmt: skip


def _network(answers: list[dict[str, Any]], made: Composed) -> list[dict[str, Any]]:
    """Return the answers about connections at the first point of capture."""
    ends = {each[:2] for each in made.ends}
    return [
        each for each in answers
        if each["question"] == "network" and (each["client"], each["broker"]) in ends
    ]  # fmt: skip


def _tables(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("*.parquet")):
        name = file.relative_to(folder).parts[0]
        found.setdefault(name, []).extend(map(repr, pq.ParquetFile(file).read().to_pylist()))
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of ``--jobs`` run one after the other."""

    def share_out(task: Callable[[Share], Any], count: int, _progress: object) -> list[Any]:
        return [task(Share(each, count)) for each in range(count)]

    monkeypatch.setattr(jobs, "share_out", share_out)


@pytest.mark.slow
@pytest.mark.usefixtures("_in_this_process", "every_process")
def test_every_command_says_the_same(tmp_path: Path) -> None:
    require_module("duckdb")
    for seed in _seeds("commands", 300, 1):
        made = composed(seed)
        if made.readable and made.ends:
            (folder := tmp_path / str(seed)).mkdir()
            check_commands(made, folder)


def check_commands(made: Composed, folder: Path) -> None:
    capture, plain, tables = folder / "a.pcap", folder / "plain.pcap", folder / "tables"
    capture.write_bytes(made.capture)
    plain.write_bytes(made.plain)
    _run("table", capture, "--out", tables)
    _run("table", capture, "--out", folder / "by two", "--jobs", 2)
    written = _tables(tables)
    assert written == _tables(folder / "by two"), made.what

    shown = [each for each in _lines("show", capture, "--json") if each["type"] == "exchange"]
    assert len(shown) == len(written.get("requests", ())), made.what
    requests = [each["request"] for each in shown if each["request"]]
    judged = sum(not each["sasl"] for each in requests)
    check_summary(made, _run("show", capture).stdout, len(requests))

    answers, expected = _answers(capture), _answers(plain)
    if not made.twins:
        audit = _audit(capture)
        assert audit == _audit(tables), made.what
        assert audit == _audit(plain), made.what
        assert sum(each["requests"] for each in audit) == judged, made.what
        check_report(made, tables, len(requests), answers)
        hops = frozenset({"hops"})
        assert _without(answers, hops) == _without(expected, hops), made.what
    elif made.is_whole:
        assert _ranked(answers) == _ranked(expected), made.what
        assert _network(answers, made) == _network(expected, made), made.what


def _audit(path: Path) -> list[dict[str, Any]]:
    result = _run("audit", path, "--to", "kafka-3.9", "--json", codes=(0, 1))
    clients: list[dict[str, Any]] = json.loads(result.stdout)["clients"]
    return clients


def check_summary(made: Composed, text: str, requests: int) -> None:
    payload = re.search(r"^bytes: payload (\d+)", text, re.M)
    if payload is not None:
        assert int(payload[1]) == made.payload + made.copied, made.what
    counted = re.search(r"^(\d+) requests? on (\d+) connections?", text, re.M)
    assert counted is not None
    assert int(counted[1]) == requests, made.what
    assert int(counted[2]) <= len(made.ends) * (1 + made.twins), made.what


def check_report(
    made: Composed, tables: Path, requests: int, answers: list[dict[str, Any]]
) -> None:
    """Its first figures, and its findings in their order."""
    page = tables.parent / "page.html"
    _run("report", tables, "--out", page)
    text = html.unescape(page.read_text().replace("<wbr>", ""))
    figures = dict(re.findall(r"<dt>([^<]*)</dt>\s*<dd>([^<]*)</dd>", text))
    assert int(figures["requests"].replace(",", "")) == requests, made.what
    assert int(figures["connections"].replace(",", "")) == made.ends.total(), made.what
    place = 0
    for each in answers:
        if each["question"] == "findings":
            place = text.index(printable_lines(each["finding"]), place)
