"""Requests by key, name and class, names that do not exist, and waiting for a request."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import kproto
from kproto.client import Connection
from kproto.errors import UnknownNameError
from kproto.messages import ApiVersionsRequest, ListGroupsRequest, MetadataRequest, MetadataResponse
from mockbroker.running.fixture import MockKafka
from tests.support.requests import request_of


async def talk(address: str, *bodies: Any) -> list[Any]:
    host, port = address.split(":")
    async with await Connection.open(host, int(port), client_id="test") as connection:
        return [await connection.request(body) for body in bodies]


def ask(mock: MockKafka, *bodies: Any) -> list[Any]:
    return asyncio.run(talk(mock.addresses[1], *bodies))


def test_names_that_do_not_exist_are_errors(mock_kafka: MockKafka) -> None:
    for call in (
        mock_kafka.requests,
        mock_kafka.assert_requested,
        mock_kafka.assert_not_requested,
        mock_kafka.assert_order,
        mock_kafka.wait_for,
    ):
        with pytest.raises(UnknownNameError, match=r"'Metadat'; did you mean Metadata"):
            call("Metadat")
    with pytest.raises(UnknownNameError, match=r"no API is named 'zzz'$"):
        mock_kafka.requests("zzz")
    with pytest.raises(UnknownNameError, match="MetadataResponse is not the class of a request"):
        mock_kafka.requests(MetadataResponse)  # type: ignore[type-var]


def test_filters_that_do_not_exist_are_errors(mock_kafka: MockKafka) -> None:
    wrong: dict[str, Any] = {"broker": 1}
    for call in (mock_kafka.requests, mock_kafka.assert_requested, mock_kafka.wait_for):
        with pytest.raises(TypeError, match="no filter 'broker'; did you mean broker_id"):
            call("Metadata", **wrong)
    wrong = {"zzz": 1}
    with pytest.raises(TypeError, match="no filter 'zzz'; use broker_id, connection_id"):
        mock_kafka.assert_order("Metadata", **wrong)


def test_key_name_and_class_select_the_same(mock_kafka: MockKafka) -> None:
    ask(
        mock_kafka,
        request_of("Metadata", topics=None),
        request_of("ListGroups"),
        request_of("Metadata", topics=[]),
    )
    for api in (3, "3", "Metadata", "METADATA", "MetadataRequest", "metadata", MetadataRequest):
        found = mock_kafka.assert_requested(api, times=2, client_id="test")
        assert [body.topics for body in found.bodies] == [None, []]
    mock_kafka.assert_order(ApiVersionsRequest, 3, "ListGroups", MetadataRequest)
    with pytest.raises(AssertionError, match="MetadataRequest was requested 2 times"):
        mock_kafka.assert_not_requested(MetadataRequest)
    with pytest.raises(AssertionError, match="first one missing is ListGroupsRequest"):
        mock_kafka.assert_order(ListGroupsRequest, ListGroupsRequest)


def test_requests_of_a_dialect_of_ones_own(tmp_path: Path) -> None:
    """Its names are known, its bodies decode, and its classes are not the released ones."""
    schemas = Path(kproto.__file__).parents[1] / "schemas" / "kafka"
    text = next(schemas.rglob("ListGroupsRequest.json")).read_text()
    (tmp_path / "ListGroupsRequest.json").write_text(text.replace("StatesFilter", "OnlyStates"))
    mine = kproto.load_dialect(tmp_path)
    draft: Any = mine.message("ListGroupsRequest")
    with MockKafka(brokers=1, dialect=mine) as mock:

        async def talk_draft() -> None:
            host, port = mock.addresses[1].split(":")
            async with await Connection.open(host, int(port), dialect=mine) as connection:
                await connection.request(draft(only_states=["Stable"]), 4)

        asyncio.run(talk_draft())
        assert mock.requests(draft)[0].body.only_states == ["Stable"]
        assert mock.requests("ListGroups")[0].body == mock.wait_for(draft).body
        mock.assert_not_requested(ListGroupsRequest)
        assert "Stable" in mock.journal_text()


def test_waiting_for_a_request(mock_kafka: MockKafka) -> None:
    ask(mock_kafka, request_of("Metadata", topics=[]))
    first = mock_kafka.wait_for(MetadataRequest)  # is there already
    assert first.body == request_of("Metadata", topics=[])
    assert mock_kafka.wait_for(client_id="test").api_key == 18  # any API
    after = mock_kafka.journal.last_sequence
    waiting = threading.Event()

    def later() -> None:
        waiting.wait()
        ask(mock_kafka, request_of("ListGroups"), request_of("Metadata", topics=None))

    thread = threading.Thread(target=later)
    thread.start()
    waiting.set()
    second = mock_kafka.wait_for("Metadata", after=after)
    thread.join()
    assert second.body.topics is None
    assert second.entry.sequence > after


def test_a_request_that_does_not_come(mock_kafka: MockKafka) -> None:
    ask(mock_kafka, request_of("ListGroups"))
    with pytest.raises(AssertionError, match=r"no Metadata request within 0.01 s(?s:.)*ListGroups"):
        mock_kafka.wait_for("Metadata", timeout=0.01)
    with pytest.raises(AssertionError, match="no request within"):
        mock_kafka.wait_for(broker_id=3, timeout=0.01)


async def test_waiting_on_an_event_loop(mock_kafka: MockKafka) -> None:
    waiting = asyncio.ensure_future(mock_kafka.aio.wait_for(MetadataRequest))
    await talk(mock_kafka.addresses[1], request_of("Metadata", topics=[]))
    assert (await waiting).version is not None
    assert mock_kafka.journal._listeners == ()
