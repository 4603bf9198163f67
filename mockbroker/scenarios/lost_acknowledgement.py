"""An acknowledgement is lost: with and without idempotence."""

from __future__ import annotations

from typing import Any

from kproto.client import ConnectionClosedError
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import opened, produce
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []


@scenario(
    "lost-acknowledgement",
    "An acknowledgement is lost, and the producer sends its batch again",
    "DP-CTL-59",
    "DP-CTL-08",
)
async def lost_acknowledgement(story: Story) -> None:
    async with MockCluster(topics=["foo=1,2,3"], profile="kafka-4.1", clock="manual") as mock:
        story.note("Broker 1 leads foo-0. A rule closes the connection after the next append.")
        async with opened(mock, 1) as connection:
            made = await connection.request(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 3
            )
        for kind, producer_id in (
            ("An idempotent producer", made.producer_id),
            ("A producer without idempotence", -1),
        ):
            before = len(mock.records("foo"))
            sequence = 0 if producer_id >= 0 else -1
            named: dict[str, Any] = {"producer_id": producer_id, "sequence": sequence}
            mock.fault(api="Produce", disconnect="after", times=1)
            story.step(f"{kind} sends a batch.")
            closed = False
            async with opened(mock, 1) as connection:
                try:
                    await produce(connection, "foo", "once", **named)
                except ConnectionClosedError:
                    closed = True
            story.check("it gets no answer: the connection is closed", closed)
            story.check("the record is in the log", len(mock.records("foo")) == before + 1)
            story.step("It connects again, and sends the same batch once more.")
            async with opened(mock, 1) as connection:
                again = await produce(connection, "foo", "once", **named)
            if producer_id >= 0:
                story.check(
                    "the broker recognises the sequence, and answers the first offset",
                    (again.error_code, again.base_offset) == (0, before),
                )
                story.check("the log has the record once", len(mock.records("foo")) == before + 1)
            else:
                story.check("the broker appends it", again.base_offset == before + 1)
                story.check("the log has it twice", len(mock.records("foo")) == before + 2)
