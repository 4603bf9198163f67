"""docs/explanation/security.md is true of the code: its form, its tests and its limits.

In the sections of promises every block of text ends with the tests of what it says; a block that
begins with ``*Note.*`` promises nothing. A new promise therefore cannot be made without a test.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from click import Option

from kproto.client import sasl
from kproto.records import MAX_DECOMPRESSED
from mockbroker.cli.proxy import proxy
from mockbroker.cli.serve import serve
from mockbroker.control import connection_limits, event_streams, hosting, journal_routes
from mockbroker.faults import documents
from mockbroker.options import DEFAULT_LIMITS
from mockbroker.proxy.kafka_proxy import ProxyOptions
from mockbroker.serving import acceptor, limits, listeners, loop_turns, server
from mockbroker.simulation.clients.telemetry import receiver
from mockbroker.simulation.groups.classic import classic_settings as settings
from mockbroker.simulation.operations import DEFAULT_BODY_BYTES
from mockbroker.simulation.operations.arguments import ZNODE_BODY_BYTES

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs/explanation/security.md").read_text("utf-8")
POLICY: Final = (ROOT / "SECURITY.md").read_text("utf-8")
PROMISES: Final = (
    "Guarantees", "Printed text", "Limits", "Control port", "Secrets", "Clients that kspec starts",
    "Supply chain",
)  # fmt: skip
"""The sections of which every block names its tests."""

NOTE: Final = "*Note.*"
TEST: Final = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
AFTER_TESTS: Final = re.compile(r"[\s.,;:)|]*")


def sections(page: str = PAGE) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(section: str) -> Iterator[str]:
    """The paragraphs, list items and table rows of a section, without headings."""
    in_note = False
    for paragraph in re.split(r"\n{2,}", section.strip()):
        is_list = paragraph.startswith(("- ", "| "))
        if in_note and is_list:
            continue  # what the note introduces
        if paragraph.startswith("| "):
            yield from paragraph.splitlines()[2:]
        elif paragraph.startswith("- "):
            yield from re.split(r"\n(?=- )", paragraph)
        elif not paragraph.startswith("#"):
            yield paragraph
        in_note = paragraph.startswith(NOTE) and paragraph.endswith(":")


def ends_with_tests(block: str) -> bool:
    found = list(TEST.finditer(block))
    return bool(found) and AFTER_TESTS.fullmatch(block, found[-1].end()) is not None


@cache
def names_in(file: str) -> set[str]:
    return {
        each.name
        for each in ast.parse((ROOT / file).read_text("utf-8")).body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("name", PROMISES)
def test_each_block_of_a_section_ends_with_its_tests(name: str) -> None:
    found = list(blocks(sections()[name]))
    promises = [each for each in found if not each.startswith(NOTE)]
    assert promises
    assert [each for each in promises if not ends_with_tests(each)] == []
    assert [each for each in found if each.startswith(NOTE) and TEST.search(each)] == []


def test_every_test_it_names_is_there() -> None:
    named = TEST.findall(PAGE)
    assert len(named) > 80
    assert [f"{file}::{name}" for file, name in named if name not in names_in(file)] == []


@pytest.mark.parametrize(
    "text",
    [
        "A promise without a test.",
        "A promise: `tests/a.py::test_b`. Another promise.",
        "- A promise (`tests/a.py::test_b`).\n- A promise in a list.",
        "| Limit | Test |\n|---|---|\n| a limit | none |",
        "*Note.* A note.\n\n- A list behind it.",
    ],
)
def test_a_promise_without_a_test_is_found(text: str) -> None:
    found = [each for each in blocks(text) if not each.startswith(NOTE)]
    assert [each for each in found if not ends_with_tests(each)]


def test_the_policy_names_a_section_for_each_kind_of_vulnerability() -> None:
    """SECURITY.md promises nothing that the page does not: each kind links to a section of it."""
    kinds = sections(POLICY)["What counts as a vulnerability"]
    listed = re.findall(r"^- (.*?)(?=^- |^\S|\Z)", kinds, re.M | re.S)
    assert len(listed) >= 5
    anchors = {name.lower().replace(" ", "-") for name in PROMISES}
    for kind in listed:
        links = re.findall(r"\(docs/explanation/security\.md#([\w-]+)\)", kind)
        assert links, kind
        assert set(links) <= anchors


# ---- limits --------------------------------------------------------------------------------------


def test_every_limit_has_its_default_and_its_option() -> None:
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| `(--[\w-]+)` \| (\d+) \|", PAGE, re.M)
    assert {name: int(default) for name, _, default in rows} == asdict(DEFAULT_LIMITS)
    options = {word for each in serve.params if isinstance(each, Option) for word in each.opts}
    assert {option for _, option, _ in rows} <= options


FIXED: Final = {
    "a frame before authentication": f"{limits.MAX_BEFORE_SASL // 1024} KiB",
    "a TLS handshake": f"{listeners.TLS_HANDSHAKE_SECONDS:g} s",
    "data read after a request": f"{server._READ_AHEAD // 1024} KiB, or one read more",
    "unread responses of a connection": f"{server._FLUSH_AT // 1024} KiB, or one response more",
    "connections of the control port": (
        f"{connection_limits.MOST_CONNECTIONS}, checked once a second"
    ),
    "idle time there": f"{connection_limits.QUIET_SECONDS:g} s",
    "a request body there": (
        f"{DEFAULT_BODY_BYTES // 1024} KiB ({ZNODE_BODY_BYTES >> 20} MiB for a znode) within "
        f"{connection_limits.BODY_SECONDS:g} s"
    ),
    "event streams of a cluster": str(event_streams._MOST_LISTENERS),
    "unread data of a stream": (
        f"{journal_routes._MOST_AT_ONCE} entries of "
        f"{journal_routes._MOST_BYTES_AT_ONCE >> 20} MiB of frames"
    ),
    "groups of a cluster": f"{settings.MOST_GROUPS:,}; others get error 15",
    "members of a group": f"{settings.MOST_MEMBERS:,}, or `group.max.size`",
    "clusters of a process": str(hosting._MOST_CLUSTERS),
}
"""The beginning of a row's first cell, and its second cell."""


def test_every_fixed_limit_is_that_of_the_code() -> None:
    (table,) = (
        each.splitlines()[2:]
        for each in re.split(r"\n{2,}", sections()["Limits"])
        if each.startswith("| Limit | Value |")
    )
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table]
    assert len(rows) == len(FIXED)
    for beginning, value in FIXED.items():
        (row,) = (each for each in rows if each[0].startswith(beginning))
        assert row[1] == value


def test_limits_in_sentences_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    for sentence in (
        f"to {MAX_DECOMPRESSED >> 20} MiB per batch by default",
        f"metrics that clients push to at most {receiver._LONGEST >> 20} MiB",
        f"at most {loop_turns.MOST_REQUESTS} requests and {loop_turns.MOST_SECONDS * 1000:g} ms",
        f"at most {documents._DEEPEST} levels deep",
        f"fewer than {acceptor.SPARE_FOR_CLIENTS} descriptors",
        f"The control port leaves {acceptor.SPARE_FOR_CONTROL},",
        f"up to {acceptor._AT_ONCE} of a listener in a row",
        f"by default {ProxyOptions(upstream=[('h', 1)]).max_targets}, bounds them",
    ):
        assert sentence in text, sentence
    assert sasl.MOST_ITERATIONS == 1_000_000  # "a million"
    (option,) = (each for each in proxy.params if each.name == "max_targets")
    assert option.default == ProxyOptions(upstream=[("h", 1)]).max_targets
