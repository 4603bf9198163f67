"""kspec's report as a reader sees it: the matrix, and behind a verdict what was said there."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kspec.report import as_html
from tests.browser.layout import covered, faint, runs_over, tiny
from tests.browser.opening import DESKTOP, PHONE, Scheme, opened
from tests.kspec.made_report import every_client

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CLIENTS = ("reference", "wrong:claims-success", "wrong:ignores-the-top-level-error",
           "wrong:dies-of-bad-answers")  # fmt: skip
CASES = ("flexible/001", "framing/002", "reassignment/002", "reassignment/004", "sasl/001")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made as anybody would: with failures, a baseline that knows one of them, variants."""
    out = tmp_path_factory.mktemp("conformance")
    known = out / "known.json"
    known.write_text('{"wrong:claims-success": ["reassignment/002-one-partition-of-two-fails"]}')
    options = [word for name in CLIENTS for word in ("--client", name)]
    options += [word for name in CASES for word in ("--case", name)]
    done = subprocess.run(
        [sys.executable, "-m", "kspec", "run", *options, "--jobs", "8", "--baseline", str(known),
         "--out", str(out)],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return out / "report.html"


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_report(browser: Any, report: Path, width: int, scheme: Scheme) -> None:
    async with opened(
        browser, report.as_uri(), width=width, scheme=scheme, name="conformance"
    ) as watched:
        seen = watched.page
        await seen.add_style_tag(content=".matrix-scroll { max-height: none }")
        await looks_right(seen)
        await the_matrix_is_that_of_the_results(seen, report)
        await a_failure_opens_at_one_click(seen)
        await everything_is_opened(seen)
        await looks_right(seen)
        paper = await seen.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) < 200) == (scheme == "dark"), paper
        await seen.reload()  # a screenshot is taken of what is there in the end
        watched.keeps_to(report)


async def everything_is_opened(seen: Any) -> None:
    """Journals to their end, too: what is only scrolled to would seem to cover what is below."""
    await seen.evaluate("""() => {
      document.querySelectorAll('details').forEach(each => each.open = true);
      for (const each of document.querySelectorAll('pre, .matrix-scroll'))
        each.style.maxHeight = 'none';
      scrollTo(0, 0);
    }""")


async def looks_right(seen: Any) -> None:
    for measure in (runs_over, covered, faint, tiny):
        assert await measure(seen) == [], measure.__name__


async def the_matrix_is_that_of_the_results(seen: Any, report: Path) -> None:
    """A row a case and a column a client, each cell with the verdict of results.json."""
    run = json.loads((report.parent / "results.json").read_text())
    shown = await seen.evaluate("""() => {
      const table = document.querySelector('table.matrix');
      const rows = [...table.querySelectorAll('tr[data-case]')];
      return {
        clients: [...table.querySelectorAll('th[data-client]')].map(
          cell => cell.dataset.client),
        titles: rows.map(row => row.querySelector('.title').textContent),
        verdicts: rows.map(row => [...row.querySelectorAll('td[data-client]')].map(
          cell => cell.querySelector('a').classList[1])),
      };
    }""")
    assert shown["clients"] == list(run["clients"]) == list(CLIENTS)
    assert shown["titles"] == [case["title"] for case in run["cases"]]
    verdicts = {(each["case"], each["client"]): each["verdict"] for each in run["results"]}
    assert shown["verdicts"] == [
        [verdicts[case["id"], client] for client in CLIENTS] for case in run["cases"]
    ]
    assert "fail" in verdicts.values()
    assert await seen.locator("table.matrix a.known").count() == 1


async def a_failure_opens_at_one_click(seen: Any) -> None:
    cell = seen.locator("table.matrix a.fail:not(.known)").first
    target = seen.locator("#" + (await cell.get_attribute("href")).removeprefix("#"))
    await cell.click()
    await target.locator("pre").first.wait_for(state="visible")
    talk = await target.locator("pre").first.inner_text()
    assert "ListPartitionReassignments" in talk or "AlterPartitionReassignments" in talk
    top = await target.evaluate("element => element.getBoundingClientRect().top")
    assert 0 <= round(top) < await seen.evaluate("innerHeight")


async def test_failures_are_within_reach_and_filtered(browser: Any, tmp_path: Path) -> None:
    """With every client, too."""
    path = tmp_path / "report.html"
    report = every_client()
    path.write_text(as_html(report), "utf-8")
    async with opened(browser, path.as_uri(), width=DESKTOP, name="every", whole=False) as watched:
        seen = watched.page
        evidence = seen.locator("#failures .evidence").first
        assert await evidence.is_visible()
        assert (await evidence.bounding_box())["y"] < 5000
        await seen.select_option("[name=client]", "kafkajs")
        await seen.select_option("[name=area]", "framing")
        await seen.select_option("[name=verdict]", "fail")
        failed = [each for each in report.results if each.judgement.verdict == "fail"]
        expected = sum(each.client == "kafkajs" and each.case.group == "framing" for each in failed)
        assert await seen.locator(".result:visible").count() == expected > 0
        assert await seen.locator("tr[data-case]:visible").count() == expected
        assert await seen.locator("th[data-client]:visible").count() == 1
        await seen.fill("[name=text]", "no such case")
        assert await seen.locator(".case:visible").count() == 0
        await seen.click("button[type=reset]")
        # The page applies its filters once the form has been reset, after the click has returned.
        clients = len({each.client for each in report.results})
        await seen.locator("th[data-client]:visible").nth(clients - 1).wait_for()
        assert await seen.locator("th[data-client]:visible").count() == clients > 1
        head = seen.locator(".matrix thead th").nth(3)
        await seen.evaluate("document.querySelector('.matrix-scroll').scrollTo(0, 2000)")
        box, room = [await each.bounding_box() for each in (head, seen.locator(".matrix-scroll"))]
        assert abs(box["y"] - room["y"]) <= 1, "heads stay in sight"
        await seen.get_by_role("button", name="fail").first.click()
        first = seen.locator("#clients tbody tr").first
        most, _ = Counter(each.client for each in failed).most_common(1)[0]
        assert await first.locator("a").inner_text() == most
        watched.keeps_to(path)
