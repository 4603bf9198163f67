"""The chain of stages: which are in it, in which order, and what reaches the journal."""

from typing import Any

from kproto.connection import ServerConnection
from kproto.error_codes import ErrorCode
from kproto.messages import ListGroupsRequest, ListGroupsResponse
from mockbroker.apis import Session
from mockbroker.faults import Fault
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.exchange import Close, Exchange, Pending, Reply
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.faults.faulty import Faulty
from tests.support.requests import request_of

OWN = ["HandlerStage", "RefusalStage"]


def names(dispatcher: Dispatcher) -> list[str]:
    return [type(stage).__name__ for stage in dispatcher._chain]


def test_only_stages_that_can_answer_are_chained():
    dispatcher = DirectBroker(Cluster(1)).dispatcher
    assert names(dispatcher) == OWN
    dispatcher.scripts.add(16, lambda _call: None)
    assert names(dispatcher) == ["ScriptStage", "HandlerStage", "RefusalStage"]
    (rule,) = dispatcher.faults.add([Fault(error=3, api=3)])
    assert names(dispatcher)[0] == "FaultStage"
    dispatcher.faults.remove(rule)
    dispatcher.scripts.clear()
    assert names(dispatcher) == OWN


def test_a_rule_that_expires_leaves_the_chain_at_the_next_request():
    broker = DirectBroker(cluster := Cluster(1))
    broker.dispatcher.faults.add([Fault(error=3, api=3, expires="1s")])
    cluster.turns.advance(1_000)
    assert broker.ask("Metadata", 9, topics=None).brokers
    assert names(broker.dispatcher) == OWN


def test_the_journal_has_a_faulted_response_once_as_it_went_out():
    faulty = Faulty(Fault(api=3, throttle=77))
    answer: Any = faulty.answer(request_of("Metadata", topics=None), 9)
    assert answer.throttle_time_ms == 77
    (entry,) = faulty.journal.select(direction="response")
    assert (entry.event, entry.decode().body.throttle_time_ms) == ("fault: fault-1", 77)


def test_a_faulted_response_is_not_cached():
    faulty = Faulty(Fault(api=3, throttle=77, times=1))
    answers: list[Any] = [faulty.answer(request_of("Metadata", topics=None), 9) for _ in range(2)]
    assert [answer.throttle_time_ms for answer in answers] == [77, 0]


class Elsewhere:
    """Answers with what another broker says, as a proxy would."""

    async def _fetch(self) -> Reply | Close:
        return Reply(ListGroupsResponse(error_code=ErrorCode.NOT_COORDINATOR))

    def answer(self, exchange: Exchange) -> Pending | None:
        return Pending(self._fetch) if exchange.api_key == ListGroupsRequest.API_KEY else None


async def test_a_stage_of_another_kind_may_take_its_time():
    broker = DirectBroker(Cluster(1))
    dispatcher = broker.dispatcher
    dispatcher._chain = (Elsewhere(), *dispatcher._chain)
    frame = broker.codec.encode_request(request_of("ListGroups"), api_version=4, correlation_id=1)
    connection = ServerConnection(codec=broker.codec, served=dispatcher.served)
    connection.receive_data(frame)
    event = connection.next_event()
    answer: Any = dispatcher.answer(connection, Session(1, 1, "127.0.0.1:9"), event)
    _, body = broker.codec.decode_response(await answer, api_key=16, api_version=4)
    assert body.error_code == ErrorCode.NOT_COORDINATOR
    assert [entry.direction for entry in broker.journal] == ["request", "response"]
    assert broker.ask("Metadata", 9, topics=None).brokers
