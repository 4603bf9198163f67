"""A broker with rules and without sockets: frames in, the plan of what goes out."""

from collections.abc import Sequence
from typing import Any

from kproto.codec.message import Message
from kproto.connection import ServerConnection
from kproto.dialects import dialect
from kproto.journal import Journal
from kproto.schema.versions import Versions
from mockbroker.apis import Session
from mockbroker.faults import Fault
from mockbroker.faults.delivery import Plan, Write
from mockbroker.profiles import profile
from mockbroker.serving.dispatch import Dispatcher
from mockbroker.serving.exchange import Close
from mockbroker.simulation.cluster import Cluster

__all__ = ["KAFKA", "Faulty"]

KAFKA = dialect("kafka")


class Faulty:
    """One cluster whose brokers serve everything that the codec knows."""

    def __init__(self, *faults: Fault, topics: Sequence[str] = ("foo:3:3", "bar:1:1")) -> None:
        self.cluster = Cluster(3, topics=topics)
        self.journal = Journal()
        served: dict[int, Versions] = {key: api.valid_versions for key, api in KAFKA.apis.items()}
        self.dispatcher = Dispatcher(
            cluster=self.cluster,
            profile=profile("kafka-4.1"),
            codec=KAFKA,
            served=served,
            journal=self.journal,
        )
        self.faults = self.dispatcher.faults
        self.faults.add(faults)
        self._correlation_id = 0

    def plan(
        self, body: Message, version: int, *, broker_id: int = 1, connection_id: int = 1,
        client_id: str | None = "test",
    ) -> Plan | Close | bytes:  # fmt: skip
        """What the broker makes of one request on a connection of its own."""
        self._correlation_id += 1
        frame = KAFKA.encode_request(
            body, api_version=version, correlation_id=self._correlation_id, client_id=client_id
        )
        connection = ServerConnection(codec=KAFKA, served=self.dispatcher.served)
        connection.receive_data(frame)
        event = connection.next_event()
        assert event is not None
        session = Session(connection_id, broker_id, "127.0.0.1:9")
        answer = self.dispatcher.answer(connection, session, event)
        if isinstance(answer, list):
            return b"".join(answer)
        return answer if isinstance(answer, bytes | Close) else _result(answer)

    def answer(self, body: Message, version: int, **named: Any) -> Message | None:
        """The decoded answer; None where none goes out."""
        plan = self.plan(body, version, **named)
        if isinstance(plan, Close):
            return None
        data = plan if isinstance(plan, bytes) else written(plan)
        if not data:
            return None
        header, answered = KAFKA.decode_response(data, api_key=body.API_KEY, api_version=version)
        assert header.correlation_id == self._correlation_id
        return answered


def written(plan: Plan) -> bytes:
    return b"".join(step.data for step in plan.steps if isinstance(step, Write))


def _result(coroutine: Any) -> Any:
    """Of one that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")
