"""What is answered from memory equals what would be computed, whatever changed in between."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker import MockCluster
from mockbroker.apis import HANDLERS, Call, Session
from mockbroker.errors import ClusterError
from mockbroker.serving.delivery import Delivery
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

QUESTIONS: list[tuple[Any, int]] = [
    (request_of("ApiVersions", client_software_name="test", client_software_version="1"), 4),
    (request_of("Metadata", topics=None), 1),
    (request_of("Metadata", topics=None), 12),
    (request_of("Metadata", topics=[]), 9),
    (request_of("DescribeCluster"), 1),
    (request_of("DescribeTopicPartitions"), 0),
]

STEPS = st.one_of(
    st.tuples(st.sampled_from(["leave_isr", "join_isr"]), st.just("foo-0"), st.integers(1, 3)),
    st.tuples(
        st.sampled_from(["failover", "hold_metadata", "release_metadata"]), st.integers(1, 3)
    ),
    st.tuples(st.just("stop_broker"), st.integers(2, 3)),
    st.tuples(st.just("start_broker"), st.integers(2, 3)),
    st.tuples(st.just("create"), st.sampled_from("abc")),
)


def computed(mock: MockCluster, body: Any, version: int) -> Any:
    """The answer of broker 1, made for this question alone."""
    call = Call(
        api=mock.dialect.apis[body.API_KEY],
        version=version,
        body=body,
        client_id=None,
        session=Session(0, 1, ""),
        cluster=mock.cluster,
        profile=mock.profile,
        served_by=lambda _: mock.served,
    )
    return HANDLERS[body.API_KEY].answer(call)


async def apply(mock: MockCluster, step: tuple[Any, ...]) -> None:
    name, *arguments = step
    try:
        if name == "create":
            mock.cluster.topics.auto_create(arguments[0])
        elif name in ("stop_broker", "start_broker"):
            await getattr(mock, name)(*arguments)
        else:
            getattr(mock, name)(*arguments)
    except ClusterError:
        # Not every step makes sense in every state; what is asked is what is answered afterwards.
        pass


async def check(mock: MockCluster, wire: Wire) -> None:
    for _ in range(2):
        frames = [wire.frame(body, version) for body, version in QUESTIONS]
        wire.send(*frames)
        for frame, (body, version) in zip(frames, QUESTIONS, strict=True):
            expected = wire.codec.encode_response(
                computed(mock, body, version),
                api_version=version,
                correlation_id=int.from_bytes(frame[8:12], "big"),
            )
            assert await wire.receive() == expected


@settings(max_examples=25)
@given(steps=st.lists(STEPS, max_size=8))
def test_answers_follow_every_change(steps: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        cluster = MockCluster(
            topics=["foo=1,2,3"], auto_create_topics=True, named_controller="leader"
        )
        async with cluster as mock, connect(mock) as wire:
            await check(mock, wire)
            for step in steps:
                await apply(mock, step)
                await check(mock, wire)

    asyncio.run(run())


async def test_brokers_answer_for_themselves() -> None:
    async with (
        MockCluster(
            topics=["foo=1,2,3"], auto_create_topics=True, named_controller="leader"
        ) as mock,
        connect(mock, 1) as one,
        connect(mock, 2) as two,
    ):
        before = await one.ask("Metadata", 12, topics=None)
        mock.hold_metadata(2)
        mock.cluster.topics.auto_create("new")
        for _ in range(2):
            assert len((await one.ask("Metadata", 12, topics=None)).topics) == 2
            assert await two.ask("Metadata", 12, topics=None) == before


async def test_what_is_answered_from_memory_is_journalled_all_the_same() -> None:
    async with MockCluster(named_controller="leader") as mock, connect(mock) as wire:
        for _ in range(3):
            await wire.ask(*QUESTIONS[0])
        requests = mock.journal.select(api=18, direction="request")
        responses = mock.journal.select(api=18, direction="response")
        assert [entry.correlation_id for entry in requests] == [1, 2, 3]
        assert [entry.correlation_id for entry in responses] == [1, 2, 3]
        assert {str(entry.client_software) for entry in [*requests, *responses]} == {"test 1"}
        assert {entry.raw[12:] for entry in requests} == {requests[0].raw[12:]}


async def test_the_client_is_known_by_its_own_words_even_when_answered_from_memory() -> None:
    async with MockCluster(named_controller="leader") as mock:
        for name in ("one", "two", "one"):
            body = request_of("ApiVersions", client_software_name=name, client_software_version="1")
            async with connect(mock) as wire:
                await wire.ask(body, 3)
                await wire.ask("Metadata", 9, topics=[])
        asked = mock.journal.select(api=3, direction="request")
        assert [str(entry.client_software) for entry in asked] == ["one 1", "two 1", "one 1"]


@pytest.mark.parametrize("times", [None, 2])
async def test_a_script_comes_before_what_is_known(times: int | None) -> None:
    async with MockCluster(named_controller="leader") as mock, connect(mock) as wire:
        known = await wire.ask("Metadata", 12, topics=[])
        mock.script(3, type(known)(cluster_id="scripted", controller_id=77), times=times)
        for _ in range(2):
            assert (await wire.ask("Metadata", 12, topics=[])).controller_id == 77
        if times is None:
            mock.clear_scripts(3)
        for _ in range(2):
            assert await wire.ask("Metadata", 12, topics=[]) == known


async def test_the_cache_is_asked_only_for_what_it_may_have(monkeypatch):
    """Requests that are never cached, such as Fetch, do not pay for the others."""
    asked: list[bytes] = []
    send_known = Delivery.send_known

    def watched(self: Delivery, session: Session, data: bytes, *limits: int) -> Any:
        asked.append(data[4:8])
        return send_known(self, session, data, *limits)

    monkeypatch.setattr(Delivery, "send_known", watched)
    async with MockCluster(topics=["foo=1"]) as mock, connect(mock) as wire:
        for _ in range(2):
            await wire.ask("Metadata", 12, topics=None)
            await wire.ask("Fetch", 12, max_wait_ms=0)
    assert asked == [b"\0\x03\0\x0c"]
