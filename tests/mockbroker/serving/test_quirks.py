"""Bytes that released clients really send: taken where brokers take them, and nothing wider.

The frames of Metadata are librdkafka 2.16's (confluent-kafka 2.16.1) for ``list_topics()``, as it
sent them to brokers of three releases; that of DescribeAcls is kafka-go's (0.4.51).
"""

import pytest

from mockbroker import MockCluster
from mockbroker.simulation.security.authorizer import Authorizer
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

FRAMES = {
    9: "0000001a0003000900000003000772646b61666b61000000000001000000",
    11: "000000190003000b00000003000772646b61666b610000000000010000",
    13: "000000190003000d00000003000772646b61666b610000000000010000",
}
BODY_AT = 4 + 8 + 2 + len("rdkafka") + 1


@pytest.mark.parametrize("version", FRAMES)
async def test_all_topics_as_librdkafka_asks_for_them(version: int) -> None:
    frame = bytes.fromhex(FRAMES[version])
    async with MockCluster(topics=["foo:2:1", "bar:1:1"]) as mock, connect(mock) as wire:
        # Twice: an answer to a frame that is not quite right is not answered from memory.
        for _ in range(2):
            wire.send(frame)
            _, body = wire.codec.decode_response(
                await wire.receive(), api_key=3, api_version=version
            )
            assert {topic.name for topic in body.topics} == {"foo", "bar"}  # type: ignore[attr-defined]
        requests = mock.journal.select(api=3, direction="request")
        assert [entry.event for entry in requests] == ["trailing-bytes"] * 2
        assert [entry.raw for entry in requests] == [frame] * 2


@pytest.mark.parametrize("version", FRAMES)
@pytest.mark.parametrize("change", ["one more", "not zero", "not null", "behind it"])
async def test_nothing_like_it_is_taken(version: int, change: str) -> None:
    frame = bytes.fromhex(FRAMES[version])
    head, body = frame[4:BODY_AT], frame[BODY_AT:]
    assert body.startswith(b"\0\0\0\0")
    changed = {
        "one more": b"\0" + body,
        "not zero": body[:1] + b"\0\0\1" + body[4:],
        "not null": b"\1" + body[1:],
        "behind it": body + b"\0",
    }[change]
    async with MockCluster() as mock, connect(mock) as wire:
        wire.send((len(head) + len(changed)).to_bytes(4, "big") + head + changed)
        assert await wire.closed() == b""
        assert mock.journal.select(event="malformed")


FILTER = bytes.fromhex(
    # DescribeAcls v3, correlation id 2, client id "kafka-go"
    "001d00030000000200086b61666b612d676f" "00"
    # the filter: any access rule of the topic foo
    "02" "04666f6f" "03" "00" "00" "01" "01" "00"
)  # fmt: skip


@pytest.mark.parametrize(
    ("behind", "event"),
    [("", ""), ("00", "trailing-bytes"), ("01", "malformed"), ("0000", "malformed")],
)
async def test_rules_as_kafka_go_asks_for_them(behind: str, event: str) -> None:
    request = FILTER + bytes.fromhex(behind)
    frame = len(request).to_bytes(4, "big") + request
    async with MockCluster(authorizer=Authorizer()) as mock, connect(mock) as wire:
        wire.send(frame)
        if event == "malformed":
            assert await wire.closed() == b""
            assert mock.journal.select(event=event)
            return
        _, body = wire.codec.decode_response(await wire.receive(), api_key=29, api_version=3)
        assert body.error_code == 31  # as anonymous clients may not describe the cluster
        (entry,) = mock.journal.select(api=29, direction="request")
        assert entry.event == event


@pytest.mark.parametrize(
    ("behind", "event"),
    [("", ""), ("00", "trailing-bytes"), ("01", "malformed"), ("0000", "malformed")],
)
async def test_scram_users_as_librdkafka_alters_them(behind: str, event: str) -> None:
    deletion = {"name": "nobody", "mechanism": 1}
    async with MockCluster() as mock, connect(mock) as wire:
        whole = wire.frame(request_of("AlterUserScramCredentials", deletions=[deletion]), 0)[4:]
        whole += bytes.fromhex(behind)
        wire.send(len(whole).to_bytes(4, "big") + whole)
        if event == "malformed":
            assert await wire.closed() == b""
            assert mock.journal.select(event=event)
            return
        _, body = wire.codec.decode_response(await wire.receive(), api_key=51, api_version=0)
        assert body.results[0].error_code == 91
        (entry,) = mock.journal.select(api=51, direction="request")
        assert entry.event == event
