"""The commands on logs: replication, records, segments, losses."""

from __future__ import annotations

import json
from typing import Any, Final

from mockbroker.simulation.log.batches.corruption_names import CORRUPTIONS
from mockbroker.simulation.log.batches.record_documents import parse_batch
from mockbroker.simulation.operations.arguments import (
    BROKER,
    BROKER_ID,
    COUNT,
    PARTITION,
    WORD,
    Argument,
    ArgumentType,
    text_of,
)
from mockbroker.simulation.operations.command import Command

__all__ = ["LOG_ROWS"]

_RECORDS_BODY_BYTES: Final = 8 * 1024 * 1024


def _records_json(name: str, value: Any) -> str:
    text = json.dumps(value) if isinstance(value, dict | list) else text_of(name, value)
    return _records_text(text)


def _records_text(text: str) -> str:
    parse_batch(text)
    return text


RECORDS_TEXT: Final = ArgumentType(
    "RECORDS",
    {
        "type": ["string", "object", "array"],
        "description": "The value of a record; a record as a JSON object with `key`, `value`, "
        "`headers` and `timestamp`; a list of records; an object with `records`, `codec`, "
        '`producer_id`, `producer_epoch`, `base_sequence`, `transactional`; or {"batch": "HEX"}.',
        "examples": ["hello", {"key": "k", "value": "v"}],
    },
    _records_json,
    _records_text,
    to_end=True,
    max_body_bytes=_RECORDS_BODY_BYTES,
)

_FOLLOWER: Final = Argument("broker", BROKER_ID, "The follower; none for all.", optional=True)
_TOPIC_NAME: Final = Argument("topic", WORD, "The name of a topic.")
_OFFSET: Final = Argument("offset", COUNT, "An offset.")
_ANY_PARTITION: Final = Argument(
    "partition", PARTITION.type, "The partition; none for all.", optional=True
)
CORRUPTION_TEXT: Final = ArgumentType(
    "HOW", {"type": "string", "enum": list(CORRUPTIONS)}, text_of, str
)

LOG_ROWS: Final = (
    Command(
        "hold-replication",
        "Stop followers from copying a log.",
        lambda on, given: on.cluster.hold_replication(given["partition"], given["broker"]),
        (PARTITION, _FOLLOWER),
        details="The follower stays in the ISR: the high watermark stands still, and produce "
        "requests with acks -1 wait. Without BROKER, all followers stop.",
    ),
    Command(
        "replicate",
        "Copy records to a held follower.",
        lambda on, given: on.cluster.replicate(
            given["partition"], given["broker"], given["offset"]
        ),
        (PARTITION, BROKER, Argument("offset", COUNT, "Where it stops.", optional=True)),
        details="It copies up to OFFSET, or the whole log, and stays held.",
    ),
    Command(
        "release-replication",
        "Resume the replication of a log.",
        lambda on, given: on.cluster.release_replication(given["partition"], given["broker"]),
        (PARTITION, _FOLLOWER),
        details="Produce requests that wait for the followers are then answered.",
    ),
    Command(
        "lag-high-watermark",
        "Keep the high watermark behind the end of a log.",
        lambda on, given: on.cluster.lag_high_watermark(given["partition"], given["records"]),
        (PARTITION, Argument("records", COUNT, "How many records behind; 0 for none.")),
        details="It stays RECORDS behind until the command sets 0. It never falls.",
    ),
    Command(
        "append",
        "Append records without a producer.",
        lambda on, given: on.cluster.append(given["partition"], given["records"]),
        (PARTITION, Argument("records", RECORDS_TEXT)),
        details="RECORDS is the value of one record, or JSON: a record with key, value, headers "
        'and timestamp, whose bytes may be {"hex": "00ff"} or {"zeros": 1000}, a list of records, '
        "an object with records, codec, producer_id, "
        'producer_epoch, base_sequence and transactional, or {"batch": "HEX"}. The checks of '
        "Produce do not apply. A batch with a producer id and a sequence counts for that "
        "producer, unless the producer has a newer epoch or has sent later ones.",
    ),
    Command(
        "make-sink",
        "Turn a topic into a sink that stores no records.",
        lambda on, given: on.cluster.make_sink(given["topic"]),
        (_TOPIC_NAME,),
        details="For measuring producers: they get the usual answers and offsets advance, while "
        "the log start offset follows the high watermark. It lasts until the topic is deleted.",
    ),
    Command(
        "make-source",
        "Turn a topic into a source that serves one batch without end.",
        lambda on, given: on.cluster.make_source(given["topic"], given["records"]),
        (_TOPIC_NAME, Argument("records", RECORDS_TEXT)),
        details="For measuring consumers: every partition holds the batch 2^40 times at "
        "consecutive offsets, in place of its records. RECORDS is as in `append`. Records "
        "produced to the topic are dropped. It lasts until the topic is deleted.",
    ),
    Command(
        "truncate",
        "Truncate a log on all replicas.",
        lambda on, given: on.cluster.truncate(given["partition"], given["offset"]),
        (PARTITION, _OFFSET),
        details="The log ends at OFFSET, or at the start of the batch that holds it, and the "
        "leader epoch rises. Acknowledged records may be lost.",
    ),
    Command(
        "unclean-election",
        "Elect a replica that lacks records.",
        lambda on, given: on.cluster.unclean_election(given["partition"], given["broker"]),
        (PARTITION, BROKER),
        details="The replica becomes the only member of the ISR, and the log is truncated to its "
        "end. Acknowledged records may be lost.",
    ),
    Command(
        "jump-log-start",
        "Raise the log start offset.",
        lambda on, given: on.cluster.jump_log_start(given["partition"], given["offset"]),
        (PARTITION, _OFFSET),
        details="The records before OFFSET disappear at once, as if retention had removed them.",
    ),
    Command(
        "roll-segment",
        "Roll the active segment of a log.",
        lambda on, given: on.cluster.roll_segment(given["partition"]),
        (PARTITION,),
        details="Compaction does not touch the active segment.",
    ),
    Command(
        "apply-retention",
        "Delete the segments that exceed the retention limits.",
        lambda on, given: on.cluster.apply_retention(given["partition"]),
        (_ANY_PARTITION,),
        details="The topic's retention.ms and retention.bytes decide, by the virtual clock. Whole "
        "segments go; records above the high watermark stay. Without PARTITION, all logs.",
    ),
    Command(
        "compact",
        "Compact a log: keep only the newest record of each key.",
        lambda on, given: on.cluster.compact(given["partition"]),
        (_ANY_PARTITION,),
        details="The active segment and everything after the start of an open transaction stay. "
        "Without PARTITION, the logs of all compacted topics.",
    ),
    Command(
        "corrupt-batch",
        "Damage a stored batch.",
        lambda on, given: on.cluster.corrupt_batch(
            given["partition"], given["offset"], given["how"]
        ),
        (PARTITION, _OFFSET, Argument("how", CORRUPTION_TEXT, "What to damage.")),
        details="HOW is bit (of the records), crc, count (of records) or codec (the bytes of a "
        "compressed batch); with the last two, the checksum stays valid.",
    ),
    Command(
        "forget-producer",
        "Forget the idempotent producers of a log.",
        lambda on, given: on.cluster.forget_producer(given["partition"], given["producer_id"]),
        (PARTITION, Argument("producer_id", COUNT, "None for all.", optional=True)),
        details="Sequence numbers start over, as after producer.id.expiration.ms.",
    ),
    Command(
        "hold-produces",
        "Hold the responses to produce requests.",
        lambda on, given: on.cluster.hold_produces(given["partition"]),
        (_ANY_PARTITION,),
        details="The records are appended at once; the response waits for `release-produces`.",
    ),
    Command(
        "release-produces",
        "Send the responses that `hold-produces` holds.",
        lambda on, given: on.cluster.release_produces(given["partition"]),
        (_ANY_PARTITION,),
    ),
    Command(
        "hold-fetches",
        "Hide the records of a log from fetches.",
        lambda on, given: on.cluster.hold_fetches(given["partition"]),
        (_ANY_PARTITION,),
        details="Fetches wait until their max wait time ends, as on an empty log.",
    ),
    Command(
        "release-fetches",
        "Show the records of a log to fetches again.",
        lambda on, given: on.cluster.release_fetches(given["partition"]),
        (_ANY_PARTITION,),
    ),
    Command(
        "complete-fetches",
        "Answer the waiting fetches now.",
        lambda on, given: on.cluster.complete_fetches(given["partition"]),
        (_ANY_PARTITION,),
        details="Each gets the records that are available.",
    ),
    Command(
        "expire-fetch-session",
        "Drop the fetch sessions of brokers.",
        lambda on, given: on.cluster.expire_fetch_session(given["broker"]),
        (Argument("broker", BROKER_ID, "A broker; none for all.", optional=True),),
        details="The next request of each session fails with error 70 (KIP-227).",
    ),
    Command(
        "diverge",
        "Make a leader epoch end at another offset.",
        lambda on, given: on.cluster.diverge(given["partition"], given["epoch"], given["offset"]),
        (
            PARTITION,
            Argument("epoch", COUNT, "A leader epoch."),
            Argument("offset", COUNT, "The end offset; without it, the true one.", optional=True),
        ),
        details="Fetches of that epoch past OFFSET get a diverging epoch, and "
        "OffsetForLeaderEpoch answers OFFSET, as after a truncation.",
    ),
)
