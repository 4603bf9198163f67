"""confluent-kafka's errors, as the adapter protocol describes them."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from kspec.adapters.python.lines import outcome

__all__ = ["described"]


def described(error: Any) -> dict[str, Any]:
    """Return the class, and for a KafkaError its name, code and text; an exception has one as
    argument.

    Negative codes are librdkafka's own, except -1, which is Kafka's.
    """
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    if not isinstance(inner, KafkaError):
        return outcome(error)
    code = inner.code()
    return {
        "error": type(error).__name__,
        "code": code if code >= -1 else None,
        "message": f"{inner.name()}: {inner.str()}",
    }
