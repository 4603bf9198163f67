"""The report as a reader sees it: on a telephone and at a desk, by day and by night."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kproto.journal import ClientSoftware
from kproto.messages import ApiVersionsRequest, ApiVersionsResponse
from tests.browser.layout import covered, faint, runs_over, tiny, unplotted
from tests.browser.opening import DESKTOP, PHONE, Scheme, opened
from tests.captures.reading import file_of
from tests.support import seeds
from tests.support.full import FULL
from tests.wiredump.report.test_report import election, metadata, operating, reassignment, written
from tests.wiredump.rows.tabled import exchange
from wiredump.model import Anomaly, Item, Place
from wiredump.report.measured import measure
from wiredump.report.page import SECTIONS, page

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CAPTURES = ("mock-2.4", "kafka-4.4.0-everyday-2")

LONG = "a-name-without-any-place-to-break-it-" * 8


def made_of(capture: str, folder: Path) -> Path:
    """The page of a capture, made as anybody would; its tables stand beside it."""
    tables, out = folder / "tables", folder / "report.html"
    for arguments in (
        ("table", str(file_of(capture)), "--out", str(tables)),
        ("report", str(tables), "--out", str(out)),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "wiredump", *arguments], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    return out


def made_long(folder: Path) -> Path:
    """The page of names that are long, and of more rows than anybody would like."""
    items: list[Item] = [
        reassignment(10 * number + 3, f"{number}-topic-of-some-length") for number in range(70)
    ]
    for number in range(10):
        items += [
            metadata(1000 + 10 * number, client_id=f"{number}-{LONG}"),
            reassignment(1003 + 10 * number, f"{number}-{LONG}"),
            election(1005 + 10 * number, LONG),
            *operating(1006 + 10 * number, f"{number}-{LONG}"),
            Anomaly("unframed", LONG, Place(0, number), 10**9 * number + 1, None),
        ]
    request = ApiVersionsRequest(client_software_name=LONG, client_software_version=LONG)
    refused = exchange(request, ApiVersionsResponse(error_code=35), 3, at=9)
    refused.software = ClientSoftware(LONG, LONG)
    items.append(refused)
    out = folder / "report.html"
    out.write_text(page(measure(written(folder / "tables", items)), LONG), encoding="utf-8")
    return out


@pytest.fixture(scope="module", params=[*CAPTURES, "long"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    return made_long(folder) if request.param == "long" else made_of(request.param, folder)


def rows(report: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Straight from the Parquet file."""
    found = pq.read_table(report.parent / "tables" / table, columns=list(columns))
    return list(zip(*(found[name].to_pylist() for name in columns), strict=True))


def expected_rows(report: Path) -> dict[str, int]:
    """How many rows each table of the page has to have."""
    traffic = rows(report, "requests", "api_key", "api_version")
    clients = rows(report, "requests", "software_name", "software_version", "client_id")
    latencies = rows(report, "requests", "api_key", "latency_ns")
    kinds = rows(report, "anomalies", "kind")
    counts = {
        "traffic": len(set(traffic)),
        "latency": len({api for api, latency in latencies if latency is not None}),
        "clients": len({each for each in clients if each != (None, None, None)}),
        "reassignments": len(rows(report, "reassignments", "outcome")),
        "elections": len(rows(report, "elections", "topic")),
        "rebalances": len(rows(report, "groups", "group_id")),
        "transactions": len(rows(report, "transactions", "outcome")),
        "hot-partitions": len(
            {
                (topic or topic_id, partition)
                for topic, topic_id, partition in rows(
                    report, "batches", "topic", "topic_id", "partition"
                )
            }
        ),
        "anomaly-kinds": len(set(kinds)),
        "anomalies": len(kinds),
        "account": len(rows(report, "account", "what")),
        "lineage": len(rows(report, "lineage", "source")),
    }
    return {name: count for name, count in counts.items() if count}


WINDOWS: list[tuple[int, Scheme]] = [
    (PHONE, "light"), (DESKTOP, "dark"), (PHONE, "dark"), (DESKTOP, "light"),
]  # fmt: skip
"""The first two and the last two have each width and each scheme."""


def some_windows() -> list[tuple[int, Scheme]]:
    first = seeds.generator("windows of a report").choice((0, 2))
    return WINDOWS if FULL else WINDOWS[first : first + 2]


@pytest.mark.parametrize(("width", "scheme"), some_windows())
async def test_the_page(browser: Any, report: Path, width: int, scheme: Scheme) -> None:
    name = f"report-{report.parent.name}"
    async with opened(browser, report.as_uri(), width=width, scheme=scheme, name=name) as watched:
        seen = watched.page
        await every_section_is_there(seen)
        await looks_right(seen)
        await seen.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        await looks_right(seen)
        assert await seen.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (
            scheme == "dark"
        )
        paper = await seen.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) < 200) == (scheme == "dark"), paper
        await links_lead_to_their_sections(seen)
        shown = await seen.evaluate(
            "Object.fromEntries([...document.querySelectorAll('table')].map("
            "table => [table.id.replace('table-', ''), table.tBodies[0].rows.length]))"
        )
        expected = expected_rows(report)
        assert {name: shown.get(name) for name in expected} == expected
        await tables_are_sorted_by_their_buttons(seen)
        if report.parent.name.startswith(CAPTURES):
            await an_error_leads_to_its_requests(seen)
        if width == DESKTOP and report.parent.name.startswith(CAPTURES):
            assert await pushed_sideways(seen) == []
        watched.keeps_to(report)


async def tables_are_sorted_by_their_buttons(seen: Any) -> None:
    """Numbers from the greatest at first, and the other way at the second press."""
    head = seen.locator("#table-traffic th").filter(has_text="bytes sent")
    values = (
        "[...document.querySelectorAll('#table-traffic tbody tr')].map(row => +row.cells[6]"
        ".textContent.replaceAll(',', ''))"
    )
    for order, descending in (("descending", True), ("ascending", False)):
        await head.get_by_role("button").press("Enter")
        assert await head.get_attribute("aria-sort") == order
        shown = await seen.evaluate(values)
        assert shown == sorted(shown, reverse=descending)
    assert await seen.locator("#table-traffic th[aria-sort]").count() == 1


async def an_error_leads_to_its_requests(seen: Any) -> None:
    await seen.evaluate("document.querySelectorAll('details').forEach(one => one.open = false)")
    link = seen.locator("#table-errors tbody a").first
    target = seen.locator((await link.get_attribute("href")) + " tbody tr")
    assert not await target.first.is_visible()
    await link.click()
    assert await target.first.is_visible()


async def pushed_sideways(seen: Any) -> list[str]:
    """Tables wider than there is room: on a telephone they may be."""
    found: list[str] = await seen.evaluate(
        "[...document.querySelectorAll('.scroll')]"
        ".filter(box => box.scrollWidth > box.clientWidth).map(box => box.ariaLabel)"
    )
    return found


async def looks_right(seen: Any) -> None:
    for measure_ in (runs_over, covered, faint, tiny, unplotted):
        assert await measure_(seen) == [], measure_.__name__


async def every_section_is_there(seen: Any) -> None:
    boxes = {}
    for name in SECTIONS:
        section = seen.locator(f"section#{name}")
        assert await section.is_visible()
        box = boxes[name] = await section.bounding_box()
        assert box["width"] > 300, name
        assert box["height"] > 40, name
    tops = [box["y"] for box in boxes.values()]
    assert tops == sorted(tops)
    ends = [box["y"] + box["height"] for box in boxes.values()]
    assert all(end <= top + 1 for end, top in zip(ends, tops[1:], strict=False))


async def links_lead_to_their_sections(seen: Any) -> None:
    for name in SECTIONS:
        link = seen.locator(f"nav a[href='#{name}']")
        box = await link.bounding_box()
        assert box["height"] >= 24, "too small for a finger"
        await link.click()
        assert await seen.locator(f"#{name}-title").is_visible()
        top = await seen.evaluate(f"document.getElementById('{name}').getBoundingClientRect().top")
        assert 0 <= round(top) < await seen.evaluate("innerHeight"), name
