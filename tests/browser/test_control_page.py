"""The control port's page as somebody sees it who debugs a client: on a telephone and at a desk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockbroker import MockCluster
from mockbroker.control import ControlServer
from tests.browser.layout import covered, faint, runs_over
from tests.browser.opening import DESKTOP, PHONE, Scheme, Watched, opened
from tests.mockbroker.wire import connect

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HOSTILE = "<img src=x onerror=alert(1)>\n\u202e" + "long-" * 30
PATIENCE_MS = 15_000


@asynccontextmanager
async def served(token: str | None = None, **options: Any) -> AsyncIterator[tuple[Any, str]]:
    topics = ["foo=1,2,3", "a.topic.with.a.name.that.is.rather.long:12:3"]
    async with MockCluster(6, topics=topics, **options) as mock:
        control = ControlServer(mock, token=token)
        await control.start()
        try:
            yield mock, control.url
        finally:
            await control.stop()


async def talk(mock: MockCluster, client_id: str = "somebody") -> None:
    """What a client says that moves foo-0, among other things."""
    async with connect(mock) as wire:
        hello = ApiVersionsRequest(client_software_name="wire", client_software_version="1")
        for body, version in (
            (hello, 3),
            (MetadataRequest(topics=None), 12),
            (
                AlterPartitionReassignmentsRequest(
                    topics=[
                        ReassignableTopic(
                            name="foo",
                            partitions=[ReassignablePartition(partition_index=0, replicas=[4, 5])],
                        )
                    ]
                ),
                0,
            ),
        ):
            wire.send(wire.frame(body, version, client_id))
            await wire.receive()


def in_row(watched: Watched, partition: str, column: int) -> Any:
    return watched.page.locator(f"tr[data-partition='{partition}'] td:nth-child({column})")


async def reads(locator: Any, text: str) -> None:
    """Wait until it does."""
    from playwright.async_api import expect

    await expect(locator).to_have_text(text, timeout=PATIENCE_MS)


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page(browser: Any, width: int, scheme: Scheme) -> None:
    async with (
        served() as (mock, url),
        opened(browser, url, width=width, scheme=scheme, name="control") as watched,
    ):
        page = watched.page
        await reads(page.locator("#status"), "live")
        await reads(in_row(watched, "foo-0", 5), "1, 2, 3")
        mock.fault(name="moved", api=46, error="NOT_CONTROLLER", times=1)
        await talk(mock)
        await talk(mock, HOSTILE)

        # The table follows; what has changed is marked.
        await reads(in_row(watched, "foo-0", 6), "4, 5")
        await reads(in_row(watched, "foo-0", 7), "1, 2, 3")
        mock.join_isr("foo-0", 4)
        await reads(in_row(watched, "foo-0", 5), "1, 2, 3, 4")
        assert "changed" in await in_row(watched, "foo-0", 5).get_attribute("class")
        mock.join_isr("foo-0", 5)
        await reads(in_row(watched, "foo-0", 4), "4, 5")
        await reads(in_row(watched, "foo-0", 6), "\N{EN DASH}")
        mock.failover(2)
        await reads(page.locator("[data-broker='2']"), "broker 2 · controller, epoch 2")
        await mock.stop_broker(6)
        await reads(page.locator("[data-broker='6']"), "broker 6 · stopped")

        # A rule, and its hit.
        async with connect(mock) as wire:
            await wire.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        moved = page.locator("#faults li")
        await reads(moved, 'moved 1 hit, over {"api":46,"times":1,"error":41}')

        # The row of a request, and its bytes.
        await page.locator("#by-api").fill("alterpartition")
        rows = page.locator("#journal > li")
        from playwright.async_api import expect

        await expect(rows).to_have_count(4, timeout=PATIENCE_MS)
        asked = rows.last
        await asked.locator("button").click()
        path = asked.locator("table.hex tr", has_text="topics[0].partitions[0].replicas[1]")
        await reads(path.locator("td:nth-child(2)"), "00 00 00 05")
        await reads(path.locator("td:nth-child(5)"), "5")
        await asked.locator("summary").click()
        assert '"partitionIndex": 0' in await asked.locator("pre").inner_text()
        await looks_right(watched)
        paper = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) < 200) == (scheme == "dark"), paper

        # By client; whatever it is called, that is text.
        await page.locator("#by-api").fill("")
        await page.locator("#by-client").fill("img src")
        await expect(rows.first).to_contain_text("<img src=x onerror=alert(1)>\\u{a}\\u{202e}long-")
        await looks_right(watched)
        await asked.locator("button").first.click()
        assert await page.locator("img").count() == 0

        # One partition of many, and those that move.
        await page.locator("#by-topic").fill("foo")
        await expect(page.locator("#partitions tbody tr")).to_have_count(1)
        await page.locator("#moving").check()
        await expect(page.locator("#partitions tbody tr")).to_have_count(0)
        keeps_to_itself(watched, url)


async def looks_right(watched: Watched) -> None:
    for measure in (runs_over, covered, faint):
        assert await measure(watched.page) == [], measure.__name__


def keeps_to_itself(watched: Watched, url: str) -> None:
    """Nothing to complain of, and nobody else was asked for anything."""
    assert watched.said == []
    assert [each for each in watched.asked if not each.startswith((url, "data:"))] == []


async def test_pausing_holds_what_comes(browser: Any) -> None:
    from playwright.async_api import expect

    async with (
        served() as (mock, url),
        opened(browser, url, width=DESKTOP, name="control-paused") as watched,
    ):
        page, rows = watched.page, watched.page.locator("#journal > li")
        await reads(page.locator("#status"), "live")
        await page.locator("#pause").check()
        async with connect(mock) as wire:
            await wire.ask(MetadataRequest(topics=[]), 12)
            await reads(page.locator("#held"), "3 new")
            await expect(rows).to_have_count(0)
            await page.locator("#pause").uncheck()
            await expect(rows).to_have_count(3)
            assert "Metadata" in await rows.first.inner_text()
        keeps_to_itself(watched, url)


async def test_another_cluster_is_chosen(browser: Any) -> None:
    import aiohttp

    async with served() as (_, url):
        async with aiohttp.ClientSession() as session:
            options = {"brokers": 2, "topics": ["second:1:2"], "profile": "kafka-2.4"}
            async with session.post(url + "/clusters", json=options) as response:
                assert response.status == 201
        async with opened(browser, url, width=PHONE, name="control-clusters") as watched:
            page = watched.page
            await reads(in_row(watched, "foo-0", 5), "1, 2, 3")
            await page.locator("#clusters select").select_option("2")
            await reads(in_row(watched, "second-0", 5), "1, 2")
            await reads(page.locator("#about"), "kafka-2.4 · 2 brokers")
            assert await in_row(watched, "foo-0", 5).count() == 0
            await looks_right(watched)


async def test_a_token_is_asked_for_and_kept_out_of_sight(browser: Any) -> None:
    async with served("secret") as (_, url):
        async with opened(browser, url, width=PHONE, name="control-token") as watched:
            page = watched.page
            await reads(page.locator("#status"), "enter the control token")
            await looks_right(watched)
            assert watched.said == []
            await page.locator("#token input").fill("secret")
            await page.locator("#token button").click()
            await reads(page.locator("#status"), "live")
            assert not await page.locator("#token").is_visible()
            assert watched.said == []
        with_token = url + "/#token=secret"
        async with opened(browser, with_token, width=PHONE, name="control-token") as watched:
            await reads(watched.page.locator("#status"), "live")
            assert "secret" not in watched.page.url
            keeps_to_itself(watched, url)
