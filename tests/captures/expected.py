"""What is not as it should be in the captures, each with its reason. Everything else has to be.

Data only. A capture that is made anew may have other numbers here: look at each before changing it.
"""

from typing import Final

__all__ = ["ANOMALIES", "PROBLEMS", "SOFTWARE", "UNKNOWN"]

IN_FLIGHT = ("unanswered", "the capture ends", "Fetch")
"""Brokers hold a follower's Fetch until there is something to give: one or two a broker were held
when the recording stopped."""

KILLED = ("unanswered", "the connection was closed by the client", "Fetch")
"""The same, and here the recording went on until the brokers were ended: each is a client of the
others."""

BROKER_KILLED = ("unanswered", "the connection was closed by the broker", "Fetch")
"""The same, where the one that was asked ended first."""

REFUSED = ("unanswered", "the connection was closed by the broker", "AlterPartitionReassignments")
"""@platformatic/kafka sends version 1 to a broker that has version 0 alone, which hangs up."""

TLS = ("tls", "TLS 1.3: nothing inside can be read without its keys", "")
"""Both directions of librdkafka's two connections: its bootstrap's, and the broker's."""

CUT = [("cut", f"{size - 8} of the frame's {size} bytes are missing", "") for size in (22, 87, 88)]
"""A consumer hangs up while its Fetch is held: of the answer the broker wrote eight bytes before
the connection was gone. Brokers of 2.4 write an answer in pieces."""

HUNG_UP = ("unanswered", "the connection was closed by the client", "Metadata")
"""librdkafka closes a connection before it was answered, a second after it asked."""

BEFORE = ("unmatched", "no request with its correlation id was seen", "")
"""Twelve bytes: the answer to what the controller asked before the recording began."""

ANOMALIES: Final[dict[str, dict[tuple[str, str, str], int]]] = {
    "kafka-2.4.1-everyday-1": {
        IN_FLIGHT: 7,
        CUT[0]: 1,
        CUT[1]: 2,
        CUT[2]: 3,
        HUNG_UP: 2,
        BEFORE: 1,
    },
    "kafka-2.4.1-everyday-2": {IN_FLIGHT: 8, CUT[0]: 3},
    "kafka-3.9.2-admin": {IN_FLIGHT: 2},
    "kafka-3.9.2-brokers": {KILLED: 2, BROKER_KILLED: 1},
    "kafka-3.9.2-everyday-1": {IN_FLIGHT: 6},
    "kafka-3.9.2-everyday-2": {IN_FLIGHT: 6},
    "kafka-4.4.0-admin": {IN_FLIGHT: 2},
    "kafka-4.4.0-brokers": {KILLED: 3},
    "kafka-4.4.0-everyday-1": {IN_FLIGHT: 6},
    "kafka-4.4.0-everyday-2": {IN_FLIGHT: 7},
    "kafka-4.4.0-secured": {TLS: 4},
    "mock-2.4": {REFUSED: 1},
    "mock-4.4": {},
}
"""By capture: (kind, reason, api) -> how many."""

TOO_LONG = ("Metadata", "request", "bytes left over after the message: 3 (at byte 28)")
"""librdkafka 2.16.0 asks for all topics in Metadata 13 with three bytes more than the message has.
Kafka does not look behind a message's end, so that nobody notices but us."""

NOT_ASKED = ("", "response", "its request was not captured")
"""See ``BEFORE``."""

CUT_OFF = ("Fetch", "response", "throttle_time_ms: bytes needed: 4, left: 0 (at byte 8)")
"""What became of the frames that are cut: see above."""

PROBLEMS: Final[dict[str, dict[tuple[str, str, str], int]]] = {
    "kafka-2.4.1-everyday-1": {CUT_OFF: 6, NOT_ASKED: 1},
    "kafka-2.4.1-everyday-2": {CUT_OFF: 3},
    "kafka-4.4.0-secured": {TOO_LONG: 6},
}
"""By capture: (api, direction, problem) -> how many frames that do not decode whole."""

SOFTWARE: Final[dict[str, frozenset[str]]] = {
    # librdkafka's binding names itself and the library.
    "confluent": frozenset({"confluent-kafka-python 2.16.1-rdkafka-2.16.0"}),
    "kafka-python": frozenset({"kafka-python 3.0.12"}),
    # Both ask for ApiVersions in a version below 3, where nobody says who they are.
    "aiokafka": frozenset({""}),
    "kafkajs": frozenset({""}),
    # Only its first connection asks; the others go by the answer.
    "platformatic": frozenset({"platformatic-kafka 1.35.0", ""}),
    "franz-go": frozenset({"kgo v1.22.2"}),
    "sarama": frozenset({"sarama v1.61.1"}),
    "java": frozenset({"apache-kafka-java 4.4.0", "apache-kafka-java 3.9.2"}),
}
"""Client id, without the demo's prefix and suffix -> the software its connections say they are."""

UNKNOWN: Final = {
    "kafka-2.4.1-everyday-1": 3,
    "kafka-2.4.1-everyday-2": 6,
    "kafka-3.9.2-everyday-2": 1,
    "kafka-4.4.0-everyday-2": 3,
}
"""Connections on which nobody said anything: opened and closed again. The recordings of brokers
have many, for who starts them looks whether they accept connections yet."""
