"""One broker that is a whole cluster: it advertises what it is told to, names itself as controller,
and answers every other api key with a function of the test's."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kproto.connection import RequestReceived
from kproto.dialects import Dialect, dialect
from tests.client.broker import Broker, api_versions, serving

__all__ = ["Answers", "fake_broker"]

Answers = Mapping[int, Callable[[Any], Any]]
"""api key -> request body -> response body, or None to leave it unanswered."""


def answering(
    answers: Answers, codec: Dialect, served: Mapping[int, tuple[int, int]] | None
) -> Callable[[Broker, Any], None]:
    if served is None:
        ranges = {3, 18, *answers}
        served = {
            key: (api.valid_versions.lowest, api.valid_versions.highest)
            for key in ranges
            for api in [codec.apis[key]]
        }

    def answer(broker: Broker, event: Any) -> None:
        assert isinstance(event, RequestReceived)
        key = event.api.api_key
        if key == 18:
            broker.respond(event, api_versions(dict(served)))
        elif key in answers:
            response = answers[key](event.body)
            if response is not None:
                broker.respond(event, response)
        elif key == 3:
            response = codec.message("MetadataResponse")
            row = response.STRUCTS["MetadataResponseBroker"]
            host, port = broker.transport.get_extra_info("sockname")
            me = row(node_id=1, host=host, port=port)
            broker.respond(event, response(controller_id=1, brokers=[me]))

    return answer


@asynccontextmanager
async def fake_broker(
    answers: Answers,
    codec: str | Dialect = "kafka",
    served: Mapping[int, tuple[int, int]] | None = None,
) -> AsyncIterator[tuple[str, list[Any]]]:
    """Its address, and every event it saw."""
    spoken = dialect(codec) if isinstance(codec, str) else codec
    async with serving(answering(answers, spoken, served), codec=spoken) as (port, seen):
        yield f"127.0.0.1:{port}", seen
