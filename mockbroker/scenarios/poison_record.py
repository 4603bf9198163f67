"""A batch is damaged: a consumer cannot get past it, unless it skips it."""

from __future__ import annotations

from kproto.errors import DecodeError
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import fetch, opened, produce
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []


@scenario(
    "poison-record",
    "A stored batch is damaged, and a consumer stops at it until it skips the offset",
    "DP-CTL-59",
    "DP-CTL-10",
)
async def poison_record(story: Story) -> None:
    async with (
        MockCluster(topics=["foo:1:1"], profile="kafka-4.1", clock="manual") as mock,
        opened(mock, 1) as leader,
    ):
        story.step("A producer sends three records; a bit of the second one changes on disk.")
        for value in ("good", "poison", "behind"):
            await produce(leader, "foo", value)
        await story.run(mock, "corrupt-batch foo-0 1 bit")
        story.step("A consumer reads from the beginning.")
        for offset in (0, 1):
            problem = ""
            try:
                await fetch(leader, "foo", offset)
            except DecodeError as error:
                problem = str(error)
            story.check(f"the answer for offset {offset} is damaged: {problem}", bool(problem))
        story.step("It skips the record: it seeks to offset 2.")
        _, values = await fetch(leader, "foo", 2)
        story.check("it reads on", values == [b"behind"])
