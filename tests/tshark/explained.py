"""Where tshark and we differ on the captures, and why. Data only.

Found with tshark 4.0.17, and counted with it; another release may have other bugs. What differs and
is in no row fails the test, and so does a row that nothing is in.
"""

from typing import Final, NamedTuple

__all__ = ["COUNTED_WITH", "EXPLAINED", "GIVEN_UP", "LEFT_OUT", "UNSEEN", "Explained"]

COUNTED_WITH: Final = "4.0.17"

_SHORT_LENGTH: Final = (
    "a bug of tshark's: where the version is not flexible, bytes have an int32 for their length,"
    " and it reads an int16; what follows is out of step, and it says itself that the frame's"
    " length does not fit"
)


class Explained(NamedTuple):
    """``theirs`` are tshark's fields, in ``api`` at ``version``; there are ``seen`` of them."""

    api: str
    version: int
    theirs: frozenset[str]
    seen: int
    reason: str


_1970: Final = (
    "a bug of tshark's: an int64 of milliseconds is shown as four bytes of seconds and four of"
    " nanoseconds, which is 1970; the timestamps of the records themselves agree"
)
_BATCH_TIMES: Final = frozenset({"batch_first_timestamp", "batch_last_timestamp"})

EXPLAINED: Final = (
    Explained(
        "ElectLeaders", 2, frozenset({"partition_id", "tagged_field_tag"}), 194,
        "a bug of tshark's: it reads no topic's name in a flexible request, takes its bytes for"
        " partitions, and gives up",
    ),
    Explained("JoinGroup", 5, frozenset({"protocol_metadata", "protocol_name", "member_metadata"}),
              39, _SHORT_LENGTH),
    Explained("SyncGroup", 3, frozenset({"member_assignment"}), 18, _SHORT_LENGTH),
    Explained("SaslAuthenticate", 1, frozenset({"sasl_authentication", "session_lifetime_ms"}),
              63, _SHORT_LENGTH),
    Explained("Produce", 7, _BATCH_TIMES, 108, _1970),
    Explained("Produce", 8, _BATCH_TIMES, 146, _1970),
    Explained("Fetch", 11, _BATCH_TIMES, 898, _1970),
    Explained("UpdateMetadata", 6, frozenset({"replica_id"}), 284,
              "tshark has the ISR under the name of the replicas, here alone"),
    Explained("WriteTxnMarkers", 0, frozenset({"throttle_time"}), 14,
              "a bug of tshark's: the response has no throttle time, and what follows is not read"),
)  # fmt: skip
"""Fields that differ."""

GIVEN_UP: Final = {
    ("AlterPartitionReassignments", 0): 87,
    ("ListPartitionReassignments", 0): 81,
    ("ElectLeaders", 2): 41,
}
"""Requests that tshark claims to know, and in which it gives up half way (``Malformed Packet``):
all there are. It then has no request for their responses, so that it decodes not one of those."""

LEFT_OUT: Final = {
    "tshark does not know the version": 6794,
    "tshark does not know the api key": 224,
    "tshark found no request for the response": 5394,
}
"""Frames of which the header alone is compared. A version that tshark does not know it reads as the
newest it knows, and says that it does; where it then gives up, the request is forgotten,
and its response cannot be told."""

UNSEEN: Final = {
    "ApiVersions": "the features of KIP-584 are tagged fields, which it shows as bytes",
    "AlterPartitionReassignments": "behind the place where it gives up",
    "ListPartitionReassignments": "behind the place where it gives up",
    "ElectLeaders": "behind the place where it gives up, or out of step",
    "JoinGroup": "out of step",
    "SyncGroup": "out of step",
    "SaslAuthenticate": "out of step",
    "WriteTxnMarkers": "behind what is no throttle time",
}
"""Messages of the compared ones with fields that no field of tshark's is about."""
