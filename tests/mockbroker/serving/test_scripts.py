"""Replies a test wrote, and schemas nobody has seen before."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import kproto
from kproto.messages import MetadataResponse
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

REQUEST = """
// A message of nobody's.
{ "apiKey": 31000, "type": "request", "name": "FrobnicateRequest", "listeners": ["broker"],
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    { "name": "Widgets", "type": "[]Widget", "versions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+", "mapKey": true },
      { "name": "Weight", "type": "float64", "versions": "1+", "ignorable": true } ] } ] }
"""
RESPONSE = """
{ "apiKey": 31000, "type": "response", "name": "FrobnicateResponse",
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    { "name": "ErrorCode", "type": "int16", "versions": "0+" },
    { "name": "Verdict", "type": "string", "versions": "0+", "nullableVersions": "1+" } ] }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "FrobnicateRequest.json").write_text(REQUEST)
    (tmp_path / "FrobnicateResponse.json").write_text(RESPONSE)
    return tmp_path


@pytest.mark.parametrize("version", [0, 1])
async def test_a_never_seen_schema_is_served_with_a_scripted_reply(folder, version):
    mine = kproto.load_dialect(folder)
    # Nothing says statically what fields a class loaded from a file has.
    message: Any = mine.message
    async with MockCluster(dialect=mine) as mock, connect(mock) as wire:
        hello = message("ApiVersionsRequest")(
            client_software_name="test", client_software_version="1"
        )
        rows = {row.api_key: row for row in (await wire.ask(hello, 3)).api_keys}
        assert (rows[31000].min_version, rows[31000].max_version) == (0, 1)
        # The released apis are still answered.
        assert len((await wire.ask("Metadata", 12, topics=[])).brokers) == 3

        mock.script(31000, {"errorCode": 0, "verdict": "frobbed"})
        request, widget = message("FrobnicateRequest"), message("FrobnicateRequest.Widget")
        answer = await wire.ask(request(widgets=[widget(name="w", weight=2.5)]), version)
        assert (answer.error_code, answer.verdict) == (0, "frobbed")
        (seen,) = mock.journal.select(api=31000, direction="request")
        decoded = seen.decode(mine)
        assert decoded.body.widgets[0].name == "w"
        assert decoded.body.widgets[0].weight == (2.5 if version else 0.0)
        assert (
            mine.encode_request(
                decoded.body, api_version=version, correlation_id=3, client_id="wire"
            )
            == seen.raw
        )


async def test_a_schema_without_a_reply_is_unimplemented(folder: Path) -> None:
    mine = kproto.load_dialect(folder)
    async with MockCluster(dialect=mine) as mock, connect(mock) as wire:
        assert (await wire.ask(mine.message("FrobnicateRequest")(), 1)).error_code == 35
        assert mock.journal.select(event="unimplemented")


async def test_a_replaced_message_is_not_answered_with_the_released_one(tmp_path: Path) -> None:
    text = RESPONSE.replace("31000", "3").replace("FrobnicateResponse", "MetadataResponse")
    (tmp_path / "MetadataResponse.json").write_text(text)
    mine = kproto.load_dialect(tmp_path)
    async with MockCluster(dialect=mine) as mock, connect(mock) as wire:
        assert mock.served[3].highest == 1
        answer = await wire.ask("Metadata", 1, topics=None)
        assert (answer.error_code, answer.verdict) == (35, "")


@pytest.mark.requirement("C-08")
async def test_replies_may_be_functions_messages_json_or_slow() -> None:
    async with MockCluster(named_controller="leader") as mock, connect(mock) as wire:
        question = request_of("Metadata", topics=[])

        @mock.on(3, times=1)
        def message(call):
            return MetadataResponse(controller_id=call.version)

        assert (await wire.ask(question, 9)).controller_id == 9

        @mock.on(3, times=1)
        async def slow(call):
            await asyncio.sleep(0)
            return MetadataResponse(controller_id=50).to_json(call.version)

        assert (await wire.ask(question, 9)).controller_id == 50
        mock.script(3, MetadataResponse(controller_id=51), times=1)
        assert (await wire.ask(question, 9)).controller_id == 51

        @mock.on(3)
        def not_me(_call):
            return None

        assert (await wire.ask(question, 9)).controller_id == 1


@pytest.mark.requirement("C-08")
async def test_later_scripts_are_asked_first_and_run_out() -> None:
    async with MockCluster(named_controller="leader") as mock, connect(mock) as wire:
        mock.script(3, MetadataResponse(controller_id=1000))
        mock.script(3, MetadataResponse(controller_id=1001), times=2)
        seen = [(await wire.ask("Metadata", 9, topics=[])).controller_id for _ in range(4)]
        assert seen == [1001, 1001, 1000, 1000]
        mock.clear_scripts()
        assert (await wire.ask("Metadata", 9, topics=[])).controller_id == 1


@pytest.mark.parametrize("reply", ["[]", '{"errorCode": "x"}', "not json"])
async def test_a_reply_that_cannot_be_sent_is_a_server_error(reply: str) -> None:
    """Our user's mistake: told in the journal, -1 on the wire, and the server lives on."""
    async with MockCluster(named_controller="leader") as mock, connect(mock) as wire:
        mock.script(16, reply, times=1)
        assert (await wire.ask("ListGroups", 4)).error_code == -1
        (entry,) = mock.journal.select(event="failed", direction="event")
        assert entry.note
        assert len(mock.take_handler_errors()) == 1
        assert (await wire.ask("Metadata", 9, topics=[])).controller_id == 1


async def test_a_script_that_raises_is_a_server_error(caplog: pytest.LogCaptureFixture) -> None:
    async with MockCluster(named_controller="leader") as mock, connect(mock) as wire:

        @mock.on(16)
        def broken(_call):
            raise RuntimeError("oops")

        assert (await wire.ask("ListGroups", 4)).error_code == -1
        (entry,) = mock.journal.select(event="failed", direction="event")
        assert entry.note == "RuntimeError: oops"
        assert "LIST_GROUPS v4 failed" in caplog.text
        assert [str(error) for error in mock.take_handler_errors()] == ["oops"]


async def test_a_slow_script_that_raises_is_a_server_error() -> None:
    async with MockCluster(named_controller="leader") as mock, connect(mock) as wire:

        @mock.on(16)
        async def broken(_call):
            await asyncio.sleep(0)
            raise RuntimeError("oops")

        assert (await wire.ask("ListGroups", 4)).error_code == -1
        assert (await wire.ask("Metadata", 9, topics=[])).controller_id == 1
        assert [str(error) for error in mock.take_handler_errors()] == ["oops"]


async def test_errors_of_handlers_and_predicates_end_the_context() -> None:
    def broken(_call):
        raise LookupError("a handler's mistake")

    def undecided(_call):
        raise RuntimeError("a predicate's mistake")

    async def run(arrange, fail=lambda: None) -> None:
        async with MockCluster(named_controller="leader") as mock, connect(mock) as wire:
            arrange(mock)
            await wire.ask("Metadata", 1, topics=[])
            fail()

    with pytest.raises(LookupError, match="handler's") as raised:
        await run(lambda mock: mock.on(3)(broken))
    assert raised.traceback[-1].name == "broken"
    with pytest.raises(RuntimeError, match="predicate's"):
        await run(lambda mock: mock.fault(when=undecided, never_answer=True))
    with pytest.raises(ExceptionGroup) as several:
        await run(lambda mock: (mock.on(3)(broken), mock.fault(when=undecided, error=1)))
    assert len(several.value.exceptions) == 2

    def fail() -> None:
        raise KeyError("the test's own")

    with pytest.raises(KeyError, match="the test's own"):
        await run(lambda mock: mock.on(3)(broken), fail)


async def test_a_client_that_leaves_during_a_slow_reply_leaves_nothing_behind() -> None:
    async with MockCluster() as mock:
        cancelled = asyncio.Event()
        asked = asyncio.Event()

        @mock.on(16)
        async def never(_call):
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async with connect(mock) as wire:
            wire.send(wire.frame(request_of("ListGroups"), 4))
            await asyncio.wait_for(asked.wait(), 10)
            await mock.stop_broker(1)
        await asyncio.wait_for(cancelled.wait(), 10)
        assert mock.connections(1) == 0


def test_a_key_that_is_not_served_cannot_be_scripted() -> None:
    mock = MockCluster(apis={16: None})
    with pytest.raises(ClusterError, match="16 is not served"):
        mock.script(16, "{}")
    with pytest.raises(ClusterError, match="16 is not served"):
        mock.on(16)


def test_json_of_a_reply_file_is_json() -> None:
    """What ``--reply`` reads is what ``to_json`` writes."""
    text = MetadataResponse(controller_id=3).to_json(12)
    assert json.loads(text)["controllerId"] == 3
    assert MetadataResponse.from_json(text, 12).controller_id == 3
