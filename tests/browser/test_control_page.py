"""The control port's page in a browser: what it shows, and what its controls do to the cluster."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockbroker import MockCluster
from mockbroker.control import ROUTES, ControlServer
from mockbroker.scenarios import SCENARIOS
from mockbroker.simulation.groups.classic.classic_group import JoinRequest
from mockbroker.simulation.groups.consumer.consumer_group import HeartbeatRequest
from mockbroker.simulation.operations import OPERATIONS
from tests.browser.layout import broken, covered, faint, runs_over
from tests.browser.opening import DESKTOP, PHONE, Scheme, Watched, opened
from tests.mockbroker.wire import connect

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HOSTILE = "<img src=x onerror=alert(1)>\n\u202e" + "long-" * 30
PATIENCE_MS = 60_000
TAP_TARGET = 44
"""In CSS pixels; what the guidelines of both makers of telephones have in common."""


@asynccontextmanager
async def served(token: str | None = None, **options: Any) -> AsyncIterator[tuple[Any, str]]:
    options = {
        "brokers": 6,
        "topics": ["foo=1,2,3", "a.topic.with.a.name.that.is.rather.long:12:3"],
        **options,
    }
    async with MockCluster(**options) as mock:
        control = ControlServer(mock, token=token, scenarios=SCENARIOS)
        await control.start()
        try:
            yield mock, control.url
        finally:
            await control.stop()


async def talk(mock: MockCluster, client_id: str = "somebody") -> None:
    """The requests of a client that moves foo-0."""
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


def panel(watched: Watched, name: str) -> Any:
    return watched.page.locator(f"[data-panel={name}]")


def partition(watched: Watched, name: str) -> Any:
    return watched.page.locator(f"tr[data-partition='{name}']")


def replica(watched: Watched, name: str, broker: int) -> Any:
    return partition(watched, name).locator(f".replica[data-key='{broker}']")


async def reads(locator: Any, text: str | re.Pattern[str]) -> None:
    """Wait until it does."""
    from playwright.async_api import expect

    await expect(locator).to_have_text(text, timeout=PATIENCE_MS)


async def is_disabled(locator: Any) -> None:
    """Wait until it is."""
    from playwright.async_api import expect

    await expect(locator).to_be_disabled(timeout=PATIENCE_MS)


async def counts(locator: Any, number: int) -> None:
    from playwright.async_api import expect

    await expect(locator).to_have_count(number, timeout=PATIENCE_MS)


async def style(locator: Any, name: str) -> str:
    found: str = await locator.evaluate("(it, name) => getComputedStyle(it)[name]", name)
    return found


def is_red(colour: str) -> bool:
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return red > green + 60 and red > blue + 60


def is_green(colour: str) -> bool:
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return green > red + 20 and green > blue + 20


async def live(watched: Watched) -> None:
    await reads(watched.page.locator("#connection"), "live")


async def outcome(watched: Watched, text: str | re.Pattern[str]) -> None:
    """What the page says of the last act."""
    await reads(watched.page.locator("#outcome [role=status]"), text)


async def looks_right(watched: Watched) -> None:
    for measure in (runs_over, broken, covered, faint):
        assert await measure(watched.page) == [], measure.__name__


async def scrolled_sideways(watched: Watched) -> list[str]:
    """Boxes whose content is wider than they are."""
    found: list[str] = await watched.page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll('.scroll')]
          .filter(each => each.scrollWidth > each.clientWidth)
          .map(each => each.outerHTML.slice(0, 80))"""
    )
    return found


async def small_targets(watched: Watched) -> list[str]:
    """Visible controls that a finger can miss."""
    found: list[str] = await watched.page.evaluate(
        """least => [...document.querySelectorAll(
            'button, input, select, textarea, summary, nav a')]
          .filter(each => each.checkVisibility())
          .map(each => each.type === 'checkbox' ? each.closest('label') : each)
          .filter(each => each.getBoundingClientRect().height < least - 0.5
            || each.getBoundingClientRect().width < least - 0.5)
          .map(each => each.outerHTML.slice(0, 80))""",
        TAP_TARGET,
    )
    return found


async def nameless(watched: Watched) -> list[str]:
    """Controls without an accessible name."""
    found: list[str] = await watched.page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea')]
          .filter(each => !(each.ariaLabel || each.textContent.trim() && each.tagName === 'BUTTON'
            || [...each.labels ?? []].some(label => label.textContent.trim())))
          .map(each => each.outerHTML.slice(0, 80))"""
    )
    return found


def keeps_to_itself(watched: Watched, url: str) -> None:
    """The console is empty, and every request went to this port."""
    assert watched.said == []
    assert [each for each in watched.asked if not each.startswith((url, "data:"))] == []


# ---- what the page shows -----------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (DESKTOP, "light")])
async def test_the_page_follows_the_cluster(browser: Any, width: int, scheme: Scheme) -> None:
    async with (
        served() as (mock, url),
        opened(browser, url, width=width, scheme=scheme, name="control") as watched,
    ):
        page = watched.page
        await live(watched)
        assert await nameless(watched) == []
        mock.fault(name="moved", api=46, error="NOT_CONTROLLER", times=1)
        await talk(mock)
        await talk(mock, HOSTILE)

        # A partition that moves looks it, and not by its colour alone.
        await reads(replica(watched, "foo-0", 4), "+4")
        adding, removing = replica(watched, "foo-0", 4), replica(watched, "foo-0", 2)
        assert is_green(await style(adding, "color"))
        assert await style(adding, "textDecorationLine") == "none"
        assert await style(adding, "borderTopStyle") == "dashed"  # not in the ISR
        assert is_red(await style(removing, "color"))
        assert await style(removing, "textDecorationLine") == "line-through"
        await reads(partition(watched, "foo-0").locator(".move"), "to 4, 5: 0 of 2 in the ISR")
        # Such rows come first.
        assert await page.locator("tbody tr").first.get_attribute("data-partition") == "foo-0"
        mock.join_isr("foo-0", 4)
        await reads(adding, "+4 ✓")
        assert "changed" in await adding.get_attribute("class")
        await reads(partition(watched, "foo-0").locator(".move"), "to 4, 5: 1 of 2 in the ISR")
        assert await partition(watched, "foo-0").locator("progress").get_attribute("value") == "1"
        await looks_right(watched)
        mock.join_isr("foo-0", 5)
        await counts(partition(watched, "foo-0").locator(".replica"), 2)
        await reads(replica(watched, "foo-0", 4), "★4 ✓")
        await reads(partition(watched, "foo-0").locator(".move"), "")
        assert not await partition(watched, "foo-0").locator("progress").is_visible()
        mock.failover(2)
        await reads(page.locator("[data-broker='2'] .tag").first, "★ controller, epoch 2")
        await mock.stop_broker(6)
        await reads(page.locator("[data-broker='6'] .tag").last, "■ stopped")

        # A rule and its hit; a request with its response is one entry, its error has a name.
        async with connect(mock) as wire:
            await wire.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        await reads(
            page.locator("[data-rule=moved] .line"), re.compile("NOT_CONTROLLER 1 hit, over")
        )
        journal = panel(watched, "journal")
        wrong = journal.locator("li.wrong")
        await counts(wrong, 1)
        head = wrong.locator("button")
        assert "ListPartitionReassignments" in await head.inner_text()
        error = head.locator(".error")
        await reads(error, "✗ NOT_CONTROLLER (41)")
        assert is_red(await style(error, "color"))
        await head.press("Enter")
        await counts(wrong.locator(".frame"), 2)
        row = wrong.locator("table.hex tr", has_text="error_code")
        await reads(row.locator("td:nth-child(2)"), "00 29")
        await reads(row.locator(".error"), "NOT_CONTROLLER")
        await wrong.locator("summary").last.click()
        await reads(wrong.locator("pre .error"), "NOT_CONTROLLER")
        assert '"errorCode": 41' in await wrong.locator("pre").last.inner_text()
        await head.press("Enter")

        # Routine traffic is folded, unless it is requested.
        folds = journal.locator("li.fold")
        assert await folds.count() >= 1
        assert "ApiVersions" in (await folds.last.inner_text())
        assert await journal.locator("b", has_text=re.compile("^Metadata$")).count() == 0
        await folds.last.locator("button").click()
        await counts(journal.locator("li.folded b", has_text=re.compile("^Metadata$")), 1)
        await journal.locator("[data-fold]").uncheck()
        await counts(folds, 0)
        await counts(journal.locator("b", has_text=re.compile("^Metadata$")), 2)

        # The bytes of a field.
        await journal.locator("[data-api]").fill("alterpartition")
        entries = journal.locator("ol > li")
        await counts(entries, 2)
        await entries.last.locator("button").click()
        field = entries.last.locator("tr", has_text="topics[0].partitions[0].replicas[1]").first
        await reads(field.locator("td:nth-child(2)"), "00 00 00 05")
        await reads(field.locator("td:nth-child(5)"), "5")
        await looks_right(watched)
        if width == PHONE:
            assert await scrolled_sideways(watched) == []
        paper = await style(page.locator("body"), "backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) < 200) == (scheme == "dark"), paper

        # By client; whatever its name is, that is text.
        await journal.locator("[data-api]").fill("")
        await journal.locator("[data-client]").fill("img src")
        await counts(entries, 3)
        from playwright.async_api import expect

        await expect(entries.first).to_contain_text(
            "<img src=x onerror=alert(1)>\\u{a}\\u{202e}long-"
        )
        await looks_right(watched)
        assert await page.locator("img").count() == 0
        await journal.locator("[data-errors]").check()
        await counts(entries, 0)

        # One partition of many, and those that move.
        await page.locator("[data-topic]").fill("foo")
        await counts(page.locator("tbody tr"), 1)
        await reads(panel(watched, "partitions").locator("[data-hidden]"), "12 partitions hidden")
        await page.locator("[data-moving]").check()
        await counts(page.locator("tbody tr"), 0)
        if width == PHONE:
            assert await small_targets(watched) == []
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE
        keeps_to_itself(watched, url)


@pytest.mark.requirement("DP-CTL-50", "DP-CTL-52")
@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (DESKTOP, "dark")])
async def test_logs_and_groups_are_followed(browser: Any, width: int, scheme: Scheme) -> None:
    async with (
        served(clock="manual") as (mock, url),
        opened(browser, url, width=width, scheme=scheme, name="data") as watched,
    ):
        await live(watched)
        logs, groups = panel(watched, "logs"), panel(watched, "groups")
        await reads(logs.locator("[data-empty]"), "No partition has records yet.")
        await reads(groups.locator("[data-empty]"), "There are no groups yet.")
        mock.produce("foo", value="one")
        mock.hold_replication("foo-0", 2)
        mock.produce("foo", value="two")
        mock.set_offset(HOSTILE, "foo-0", 0)
        mock.failover(2)  # an action, which the page learns of at once
        row = logs.locator("[data-log='foo-0']")
        await reads(
            row.locator("span"), "offsets 0 to 2, high watermark 1, 1 record not replicated"
        )
        await reads(row.locator("div"), "★1 ✓ end 2 · 2 ✓ end 1 (1 behind) held · 3 ✓ end 2")
        mock.release_replication("foo-0")
        await reads(row.locator("span"), "offsets 0 to 2, high watermark 2")
        await counts(groups.locator("li"), 1)
        await reads(groups.locator("li span"), "Empty, generation 0, 0 members")
        await reads(groups.locator("li div").last, "committed foo-0 0 (lag 2)")
        request = JoinRequest("g", "", "consumer", (("range", b""),), 10_000, 60_000, "one")
        mock.cluster.groups.join(request, lambda result: None)
        await counts(groups.locator("li"), 2)
        mine = groups.locator("[data-group=g]")
        await reads(mine.locator("span"), "CompletingRebalance, generation 1, 1 member")
        mock.hold_joins("g")
        mock.rebalance("g")
        await reads(mine.locator("span"), "PreparingRebalance, generation 1, 1 member, joins held")
        mock.cluster.groups.join(replace(request, instance_id="two"), lambda result: None)
        await reads(mine.locator("div").first, "one · two joins")
        beat = HeartbeatRequest(
            "c", "m", 0, instance_id="three", rebalance_timeout_ms=60_000,
            topic_names=("foo",), owned=frozenset(),
        )  # fmt: skip
        assert mock.cluster.groups.consumer.heartbeat(beat).error_code == 0
        mock.set_target_assignment("c", {})
        theirs = groups.locator("[data-group=c]")
        await reads(theirs.locator("span"), "Reconciling, epoch 3, 1 member")
        await reads(theirs.locator("div").first, "three has foo-0 target nothing")
        await looks_right(watched)


async def test_what_is_not_the_users_is_folded(browser: Any) -> None:
    """Internal topics, and fetches that bring nothing; a request that waits is not an error."""

    def fetch(max_wait_ms: int, offset: int) -> FetchRequest:
        position = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
        topic = FetchTopic(topic="foo", partitions=[position])
        return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=[topic])

    async with (
        served(brokers=1, topics=["foo:1:1"], ready_coordinators=True) as (mock, url),
        opened(browser, url, width=DESKTOP, name="control-folds") as watched,
    ):
        journal = panel(watched, "journal")
        partitions, logs = panel(watched, "partitions"), panel(watched, "logs")
        await live(watched)
        await reads(watched.page.locator("#about"), "kafka-4.4 · 1 broker")
        mock.set_offset("g", "foo-0", 0)  # a record of __consumer_offsets
        mock.produce("foo", value="one")
        await reads(partitions.locator("[data-hidden]"), "50 partitions hidden")
        await counts(partitions.locator("tbody tr"), 1)
        await partitions.locator("[data-internal]").check()
        await counts(partitions.locator("tbody tr"), 51)
        await counts(logs.locator("[data-log]"), 1)
        await logs.locator("[data-internal]").check()
        await counts(logs.locator("[data-log]"), 2)

        entries = journal.locator("ol > li:not(.fold)", has_text="Fetch")
        async with connect(mock) as wire:
            wire.send(wire.frame(fetch(60_000, 1), 11, "waits"))
            await counts(entries, 1)
            await counts(entries.locator("span", has_text=re.compile("^waiting $")), 1)
            assert await entries.locator(".bad").count() == 0
            mock.produce("foo", value="two")
            await wire.receive()
            await counts(entries.locator("span", has_text=re.compile(r"^[0-9.]+ ms $")), 1)
            for _ in range(3):
                await wire.ask(fetch(1, 2), 11)
            await reads(
                journal.locator("li.fold").first, re.compile("routine entries: empty Fetch .3")
            )
            await counts(entries, 1)
            wire.send(wire.frame(fetch(60_000, 2), 11, "leaves"))
            await counts(entries.locator("span", has_text=re.compile("^waiting $")), 1)
        await counts(entries.locator(".bad", has_text=re.compile("^no response $")), 1)
        keeps_to_itself(watched, url)


async def test_an_empty_page_says_what_to_do(browser: Any) -> None:
    """Its command line makes traffic, its button makes a topic, its addresses can be copied."""
    async with (
        served(brokers=3, topics=[]) as (mock, url),
        opened(browser, url, width=PHONE, name="control-empty") as watched,
    ):
        page, journal = watched.page, panel(watched, "journal")
        await live(watched)
        await looks_right(watched)
        assert await small_targets(watched) == []
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url)
        clipboard = "navigator.clipboard.readText()"
        await panel(watched, "cluster").locator("[data-copy-bootstrap]").click()
        await reads(panel(watched, "cluster").locator("[data-copy-bootstrap]"), "Copied")
        assert await page.evaluate(clipboard) == mock.bootstrap
        await page.get_by_role("button", name="Copy the address of broker 2").click()
        assert await page.evaluate(clipboard) == mock.addresses[2]

        await page.get_by_role("button", name="Create topic").click()
        await outcome(watched, "✓ create-topic demo:3:1: 1 change")
        assert {name: len(topic.partitions) for name, topic in mock.cluster.topics.items()} == {
            "demo": 3
        }
        await counts(page.locator("tbody tr"), 3)

        assert await journal.locator("[data-empty]").is_visible()
        command = await journal.locator("[data-command]").inner_text()
        program, *arguments = command.split()
        assert program == "kproto"
        ran = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kproto", *arguments, stdout=asyncio.subprocess.PIPE
        )
        assert (await ran.communicate())[0].split() == [b"demo"]
        await counts(journal.locator("li.fold"), 1)
        assert not await journal.locator("[data-empty]").is_visible()
        keeps_to_itself(watched, url)


async def test_a_large_cluster_and_a_long_journal_stay_bounded(browser: Any) -> None:
    hostile = "a-topic-of-many"
    topics = [f"{hostile}-{number}:3:3" for number in range(1000)]
    async with served(topics=topics) as (mock, url):
        for number in range(20_000):
            mock.journal.record(
                number, 1, 1, "request", "", 0, 9, number, HOSTILE, raw=b"\0\0\0\1\0"
            )
        async with opened(browser, url, width=PHONE, name="control-large") as watched:
            page, journal = watched.page, panel(watched, "journal")
            await live(watched)
            hidden = panel(watched, "partitions").locator("[data-hidden]")
            await reads(hidden, "2800 partitions hidden")
            await counts(page.locator("tbody tr"), 200)
            await counts(journal.locator("ol > li"), 150)
            await reads(journal.locator("ol + [data-hidden]"), "250 older entries hidden")
            await page.locator("[data-topic]").fill("many-999")
            await counts(page.locator("tbody tr"), 3)
            await reads(hidden, "2997 partitions hidden")
            # A partition beyond the limit moves: it is shown.
            await page.locator("[data-topic]").fill("")
            await counts(page.locator("tbody tr"), 200)
            mock.cluster.reassignments.alter([(f"{hostile}-999", [(1, [4, 5])])])
            await reads(
                page.locator("tbody tr").first.locator(".move"), "to 4, 5: 1 of 2 in the ISR"
            )
            # A burst: the page skips to the newest entries, and says so.
            for number in range(5_000):
                mock.journal.record(
                    number, 1, 1, "request", "", 0, 9, number, "last", raw=b"\0\0\0\1\0"
                )
            async with connect(mock) as wire:
                await wire.ask(MetadataRequest(topics=[]), 12)
            await reads(
                journal.locator("ol + [data-hidden]"),
                re.compile("^[0-9]+ older entries hidden; 400[0-9] frames and events skipped"),
            )
            await journal.locator("[data-api]").fill("metadata")
            await counts(journal.locator("ol > li"), 1)
            await journal.locator("[data-api]").fill("")
            await counts(journal.locator("ol > li"), 150)
            kept = await page.evaluate("document.querySelectorAll('*').length")
            assert kept < 10_000
            keeps_to_itself(watched, url)


# ---- what the page does ------------------------------------------------------------------------


async def test_every_act(browser: Any) -> None:
    """By clicks; the cluster is looked at through Python."""
    async with (
        served(clock="manual") as (mock, url),
        opened(browser, url, width=DESKTOP, name="control-acts") as watched,
    ):
        page, cluster = watched.page, mock.cluster
        press = page.get_by_role
        await live(watched)

        await replica(watched, "foo-0", 3).click()
        await outcome(watched, "✓ leave-isr foo-0 3: 1 change")
        assert cluster.topics.partition("foo", 0).isr == (1, 2)
        # By keyboard; the focus stays.
        await replica(watched, "foo-0", 3).press("Enter")
        await outcome(watched, "✓ join-isr foo-0 3: 1 change")
        assert cluster.topics.partition("foo", 0).isr == (1, 2, 3)
        await reads(replica(watched, "foo-0", 3), "3 ✓")
        assert await replica(watched, "foo-0", 3).evaluate("it => it === document.activeElement")

        await press("button", name="Stop broker 3").click()
        await outcome(watched, re.compile("^✓ stop-broker 3: [2-9]"))
        assert not cluster.brokers[3].live
        assert cluster.topics.partition("foo", 0).isr == (1, 2)
        await press("button", name="Start broker 3").click()
        await outcome(watched, re.compile("^✓ start-broker 3"))
        assert cluster.brokers[3].live
        await press("button", name="Make broker 2 the controller").click()
        await outcome(watched, "✓ failover 2: 1 change")
        assert cluster.state.controller_id == 2
        await is_disabled(press("button", name="Make broker 2 the controller"))

        assert cluster.timers.now_ms == 0
        await page.get_by_label("advance by").fill("2500ms")
        await press("button", name="Advance").click()
        await reads(page.locator("[data-clock]"), "2.5 s (manual)")
        assert cluster.timers.now_ms == 2500

        # Whatever else can be done to a broker, and any operation.
        card = page.locator("[data-broker='4']")
        await card.locator("summary").click()
        offered = await card.locator("details button").all_inner_texts()
        on_brokers = {
            name
            for name, each in OPERATIONS.items()
            if [a.name for a in each.arguments] == ["broker"]
        }
        assert {*offered, "stop-broker", "start-broker", "failover"} == on_brokers
        held = cluster.controller.metadata_view(4).offset
        await card.get_by_role("button", name="hold-metadata").click()
        await outcome(watched, re.compile("^✓ hold-metadata 4"))
        await press("combobox", name="operation").select_option("create-topic")
        form = page.locator("form[data-operation=create-topic]")
        await form.locator("input").fill("bar=4,5/5,6")
        await form.locator("input").press("Enter")
        await outcome(watched, "✓ create-topic bar=4,5/5,6: 1 change")
        assert cluster.topics["bar"].partitions[1].replicas == (5, 6)
        assert cluster.controller.metadata_view(4).offset == held
        await replica(watched, "bar-1", 5).wait_for()

        # Rules of faults.
        form = page.locator("[data-add]")
        for field, text in {
            "api": "ListPartitionReassignments", "error": "REQUEST_TIMED_OUT", "times": "2",
            "name": "<b>late</b>", "more": '{"software": "wire"',
        }.items():  # fmt: skip
            await form.locator(f"[name={field}]").fill(text)
        await press("button", name="Add rule").click()
        assert await form.locator("[name=more]").evaluate("it => it.validationMessage")
        assert list(mock.faults) == []
        await form.locator("[name=more]").fill('{"apply": true}')
        await press("button", name="Add rule").click()
        await counts(page.locator("[data-rule]"), 1)
        (rule,) = mock.faults
        assert rule.fault.name == "<b>late</b>"
        assert (rule.fault.error, rule.fault.times, rule.fault.apply) == (7, 2, True)
        async with connect(mock) as wire:
            await wire.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        assert rule.hits == 1
        await reads(page.locator("[data-rule] .tag"), "1 hit")
        await press("button", name="Remove rule <b>late</b>").click()
        await counts(page.locator("[data-rule]"), 0)
        assert list(mock.faults) == []
        for name in ("one", "two"):
            mock.fault(name=name, api=3, error=41)
        await counts(page.locator("[data-rule]"), 2)
        await press("button", name="Remove all rules").click()
        await counts(page.locator("[data-rule]"), 0)
        assert list(mock.faults) == []

        scenarios = panel(watched, "scenarios")
        await scenarios.locator("select").select_option("cancel-is-a-revert")
        await press("button", name="Run scenario").click()
        await reads(
            scenarios.locator("[data-result]"), re.compile("^✓ cancel-is-a-revert: [0-9]+ claim")
        )
        assert "[ok]" in await scenarios.locator("pre").inner_text()

        # The log of what all this did, and a refusal.
        changes = panel(watched, "changes").locator("li")
        await reads(changes.first.locator("b"), mock.cluster.log[-1].cause)
        keeps_to_itself(watched, url)
        await replica(watched, "foo-0", 1).click()
        text = page.locator("#outcome [role=status]")
        await reads(text, re.compile("^✗ leave-isr foo-0 1: broker 1 is the leader of foo-0"))
        assert is_red(await style(text, "color"))
        assert cluster.topics.partition("foo", 0).leader == 1
        await press("button", name="Dismiss").click()
        assert not await text.is_visible()
        await looks_right(watched)


async def test_a_page_of_another_site_can_do_nothing(browser: Any) -> None:
    """In a browser, with everything that a page can send without being allowed to."""
    from aiohttp import web

    async def evil(_: web.Request) -> web.Response:
        return web.Response(text="<!DOCTYPE html><title>evil</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", evil)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    paths = [route.path for route in ROUTES if route.method == "POST"]
    try:
        async with served() as (mock, url):
            rule = mock.fault(name="kept", api=3, error=41)
            before = (mock.cluster.describe(), len(mock.cluster.log), list(mock.faults))
            # Both names lead here, and are other origins.
            for host in ("127.0.0.1", "localhost"):
                page = await browser.new_page()
                await page.goto(f"http://{host}:{port}/")
                statuses = await page.evaluate(
                    """async ([url, paths]) => {
                      const sent = [];
                      const text = '{"broker": 2}';
                      const bodies = [text, new Blob([text], {type: 'application/json'})];
                      for (const path of paths)
                        for (const body of bodies)
                          for (const mode of ['no-cors', 'cors'])
                            sent.push(fetch(url + path, {method: 'POST', mode, body})
                              .then(it => it.type, () => 'refused'));
                      for (const [path, method] of [['/faults', 'DELETE'], ['/state', 'GET']])
                        sent.push(fetch(url + path, {method}).then(it => it.type, () => 'refused'));
                      navigator.sendBeacon(url + '/failover', text);
                      const form = document.createElement('form');
                      form.action = url + '/failover';
                      form.method = 'post';
                      form.enctype = 'text/plain';
                      form.innerHTML = `<input name='{"broker": 2, "a": "' value='"}'>`;
                      document.body.append(form);
                      const found = await Promise.all(sent);
                      form.submit();
                      return found;
                    }""",
                    [url, paths],
                )
                await page.wait_for_url(url + "/failover")
                assert set(statuses) <= {"opaque", "refused"}
                assert statuses[-2:] == ["refused", "refused"]
                assert "error" in json.loads(await page.locator("body").inner_text())
                await page.close()
            assert (mock.cluster.describe(), len(mock.cluster.log), list(mock.faults)) == before
            assert rule.hits == 0
    finally:
        await runner.cleanup()


async def test_pausing_holds_new_entries_back(browser: Any) -> None:
    async with (
        served() as (mock, url),
        opened(browser, url, width=DESKTOP, name="control-paused") as watched,
    ):
        journal = panel(watched, "journal")
        rows = journal.locator("ol > li")
        await live(watched)
        await journal.locator("[data-pause]").check()
        async with connect(mock) as wire:
            await wire.ask(MetadataRequest(topics=[]), 12)
            await reads(journal.locator("[data-held]"), "3 new")
            await counts(rows, 0)
            await journal.locator("[data-pause]").uncheck()
            await counts(rows, 1)
            assert "2 routine entries: Metadata, connected" in await rows.first.inner_text()
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
            await reads(replica(watched, "foo-0", 3), "3 ✓")
            await page.locator("#clusters select").select_option("2")
            await reads(replica(watched, "second-0", 2), "2 ✓")
            await reads(page.locator("#about"), "kafka-2.4 · 2 brokers")
            assert await partition(watched, "foo-0").count() == 0
            # An act is about the chosen cluster, and the links of panels do not change it.
            await page.get_by_role("link", name="Journal").click()
            assert page.url.endswith("#cluster=2")
            await page.get_by_role("button", name="Make broker 2 the controller").click()
            await reads(page.locator("[data-broker='2'] .tag").first, "★ controller, epoch 2")
            await page.get_by_role("button", name="Dismiss").click()
            await looks_right(watched)


async def test_a_token_is_requested_and_kept_out_of_sight(browser: Any) -> None:
    async with served("secret") as (mock, url):
        async with opened(browser, url, width=PHONE, name="control-token") as watched:
            page = watched.page
            await reads(page.locator("#connection"), "enter the control token")
            await looks_right(watched)
            assert watched.said == []
            await page.locator("#token input").fill("secret")
            await page.locator("#token button").click()
            await live(watched)
            assert not await page.locator("#token").is_visible()
            assert watched.said == []
        with_token = url + "/#token=secret"
        async with opened(browser, with_token, width=PHONE, name="control-token") as watched:
            await live(watched)
            assert "secret" not in watched.page.url
            await replica(watched, "foo-0", 3).click()
            await outcome(watched, "✓ leave-isr foo-0 3: 1 change")
            assert mock.cluster.topics.partition("foo", 0).isr == (1, 2)
            keeps_to_itself(watched, url)
