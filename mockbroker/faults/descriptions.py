"""The members of a fault rule in words: for the OpenAPI document and the reference of faults.

Data only. A test holds the names to the members of ``Fault``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["MEMBERS", "Description"]


class Description(NamedTuple):
    """``value`` is the form of the member's value, ``text`` says what the member does."""

    value: str
    text: str


MEMBERS: Final[Mapping[str, Mapping[str, Description]]] = {
    "requests": {
        "name": Description(
            "text",
            "Names the rule in the journal and for its removal. Rules without a name are "
            "`fault-1`, `fault-2` and so on.",
        ),
        "broker": Description("id", "The broker that receives the request."),
        "listener": Description(
            "pattern", "The listener that the request comes in on, by its name in `listeners`."
        ),
        "api": Description(
            "key or name", "`45`, `AlterPartitionReassignments` or `ALTER_PARTITION_REASSIGNMENTS`."
        ),
        "version": Description(
            "`3`, `1-4`, `2+`", "The request's version, even one that the broker does not serve."
        ),
        "client_id": Description(
            "pattern",
            "The request's client id; a null one counts as empty. Patterns have the wildcards `*`, "
            "`?` and `[...]`.",
        ),
        "software": Description(
            "pattern", "The client software's name, such as `kafka-python` (KIP-511)."
        ),
        "software_version": Description(
            "pattern",
            "The client software's version. Both are known from the connection's ApiVersions "
            "request of version 3 or later on, that request included.",
        ),
        "topic": Description("pattern", "A topic that the request names, by name or by id."),
        "partition": Description(
            "number", "A partition that the request names, of `topic` if that is given."
        ),
        "group": Description("pattern", "A group that the request names."),
        "member": Description("pattern", "A member id or an instance id that the request names."),
        "transactional_id": Description("pattern", "A transactional id that the request names."),
        "producer_id": Description(
            "number", "A producer id that the request names, or of a batch that it holds."
        ),
        "connection": Description(
            "`1`, `2+`",
            "The n-th of the connections that had a request which matches all members above.",
        ),
        "nth": Description(
            "`3`, `2-4`, `5+`", "The n-th of the requests that match all members above."
        ),
        "probability": Description(
            "above 0, at most 1", "Each request that matches all else, with this probability."
        ),
        "seed": Description(
            "number",
            "Seeds `probability` and `garbage`, together with the rule's name; 0 by default.",
        ),
    },
    "limits": {
        "times": Description("number", "The rule expires after this many hits."),
        "expires": Description(
            "duration", "The rule expires this long after it was added, by the cluster's clock."
        ),
        "observe": Description(
            "true",
            "The rule only counts requests, and has no other effect: later rules and the broker "
            "see them.",
        ),
    },
    "cluster": {
        "apply": Description(
            "true, false",
            "Whether the broker carries out the request. The default is false with `error`, "
            "`reply`, `never_answer`, `raw`, `garbage`, `tls_alert` and `disconnect: before`, "
            "otherwise true.",
        ),
        "steps_before": Description(
            "list of operations", "Run before the broker carries out the request."
        ),
        "steps_after": Description(
            "list of operations", "Run after that, before the response is sent."
        ),
    },
    "message": {
        "reply": Description(
            "JSON",
            "The response, as Kafka's JsonConverter writes it. Omitted members of the root take "
            "their defaults.",
        ),
        "error": Description("name or code", "This error code."),
        "error_message": Description("text", "Its message, if the version has a field for one."),
        "error_at": Description(
            "`top`, `topic`, `partition`, `element`, `all`", "The level of the error code."
        ),
        "throttle": Description("duration", "The response's throttle time."),
        "as_version": Description("number", "Encodes the response at another version."),
        "unknown_tags": Description(
            "list of `header`, `body`, `elements`",
            "Adds an unknown tagged field to each of these; `elements` are the structs of all "
            "arrays.",
        ),
        "unknown_tag": Description("number", "Its tag; 9999 by default."),
        "unknown_tag_data": Description("hex", "Its bytes; `00` by default."),
        "set": Description(
            "path: value",
            "Sets fields: numbers, booleans, text, bytes (base64), uuids and arrays of those. Null "
            "is written even where it is not allowed.",
        ),
        "set_length": Description(
            "path: number",
            "Sets the length or count of strings, bytes and arrays, and changes nothing else.",
        ),
        "set_bytes": Description(
            "path: hex",
            "Replaces the bytes of fields or parts of the response, such as `body (tagged "
            "fields)`.",
        ),
        "more": Description(
            "array: number",
            "Adds this many elements to an array of the root, up to 100,000: copies of the last "
            "one, whose first field counts on if it is an integer.",
        ),
        "replace_bytes": Description(
            "offset+length: hex",
            '`{"37+4": "7fffffff"}` replaces four bytes from offset 37 of the original frame, as '
            "`kproto decode --bytes` counts. Length 0 inserts.",
        ),
        "corrupt": Description(
            "`bit`, `crc`, `count`, `codec`, `short`",
            "Damages the first record batch of each partition, or of those that `topic` and "
            "`partition` select: a bit of the records, the checksum, the count of records, the "
            "bytes of the codec; `short` cuts the last batch off. The stored batch stays intact.",
        ),
    },
    "frame": {
        "correlation_id": Description("number", "Replaces the correlation id."),
        "correlation_off_by": Description("number", "Adds to the correlation id."),
        "trailing": Description("hex", "Adds bytes after the body, counted in the frame's size."),
        "length": Description("number", "Sets the frame's size field, and changes nothing else."),
        "length_off_by": Description("number", "Adds to the frame's size field."),
        "truncate": Description(
            "number",
            "Sends only the first bytes of the frame, its size included; negative: all but the "
            "last ones.",
        ),
        "follow_with": Description("hex", "Adds bytes after the frame, in the same write."),
        "unsolicited": Description(
            "`before`, `after`",
            "Sends the response once more, before or after itself, with a correlation id of no "
            "request.",
        ),
        "unsolicited_correlation_id": Description(
            "number, `own`", "The correlation id of that copy; `own` repeats the response's."
        ),
        "raw": Description("hex", "Sends these bytes instead of a frame."),
        "garbage": Description("number", "Sends this many random bytes instead of a frame."),
        "tls_alert": Description(
            "number",
            "Sends a TLS record with a fatal alert of this description, such as 80, instead of a "
            "frame.",
        ),
    },
    "connection": {
        "never_answer": Description(
            "true", "Sends no response; later requests of the connection are answered."
        ),
        "delay": Description(
            "duration",
            "Waits before the request is carried out and answered; later requests wait behind it.",
        ),
        "hold_responses": Description(
            "number", "Sends the response after this many later ones of its connection."
        ),
        "hold_for": Description(
            "duration",
            "Sends the response this much later, so that others overtake it. With "
            "`hold_responses`, whichever comes first.",
        ),
        "swap": Description(
            "`order`, `ids`",
            "Swaps this response and the connection's next one, or only their correlation ids.",
        ),
        "split": Description("number", "Writes this many bytes at a time."),
        "split_delay": Description("duration", "The pause between these writes."),
        "disconnect": Description(
            "`before`, `after`, `answered`",
            "Ends the connection before the request is carried out, after that but unanswered, or "
            "after the response.",
        ),
        "close_with": Description(
            "`fin`, `half-close`, `reset`",
            "How it ends: in order; only in the broker's direction, while incoming data are read "
            "and dropped; or by a TCP RST.",
        ),
    },
}
"""By group, in the order of the reference."""
