"""The tables about topics: batches, records, fetches, reassignments, elections."""

from __future__ import annotations

from typing import Final

from wiredump.rows.columns import Table, columns

__all__ = ["BATCHES", "ELECTIONS", "FETCHES", "REASSIGNMENTS", "RECORDS", "TOPICS"]

TOPICS: Final = Table(
    "topics",
    "Topic ids with the names that messages gave them.",
    columns(
        """
        topic_id  string  as Kafka writes it: base64, 22 characters
        topic     string  its name
        first_ns  int64   when the first message that has both was complete
        """
    ),
    ("topic_id",),
)

BATCHES: Final = Table(
    "batches",
    "Record batches of Produce requests, Fetch and ShareFetch responses, whole ones.",
    columns(
        """
        connection        int64   id of the connection
        direction         string  request (Produce) or response
        frame_offset      int64   of the frame within the direction
        timestamp_ns      int64   time of the frame's last byte
        api_key           int16   0 Produce, 1 Fetch, 78 ShareFetch
        topic             string  name; null if only the id is known by then
        topic_id          string  null where the version has names
        partition         int32   number; -1 if a hole has it, and then the topic is null
        batch             int32   place within the partition's batches of this frame, from 0
        base_offset       int64   of its first record; a producer's begins at 0
        last_offset       int64   of its last record
        magic             int16   0, 1 or 2; of 0 and 1 each message that is not compressed is one
        codec             string  none, gzip, snappy, lz4 or zstd
        timestamp_type    string  create, append (the broker's clock), or none (magic 0)
        max_timestamp_ms  int64   the largest of its records; null for magic 0
        leader_epoch      int32   of the partition; null below magic 2, and for producers
        producer_id       int64   null without one
        producer_epoch    int16   likewise
        base_sequence     int32   likewise
        transactional     bool    part of a transaction
        control           bool    markers, no records of applications
        crc_ok            bool    whether the checksum fits
        size              int32   bytes, header included
        records           int32   how many; null where they cannot be read (see anomalies)
        salvaged          bool    whether bytes of the frame are missing
        """
    ),
    ("connection", "direction", "frame_offset", "topic_id", "topic", "partition", "batch"),
)

RECORDS: Final = Table(
    "records",
    "The records of those batches, without the markers of control batches.",
    columns(
        """
        connection    int64   id of the connection
        direction     string  request (Produce) or response
        frame_offset  int64   of the frame within the direction
        topic         string  as in batches
        topic_id      string  as in batches
        partition     int32   number
        batch         int32   as in batches
        offset        int64   of the record; a producer's count from 0
        timestamp_ms  int64   milliseconds since the epoch; null for magic 0
        key           binary  null where the record has none
        value_size    int32   bytes; null for a tombstone
        value_hash    binary  BLAKE2b of the value with a digest of 16 bytes; null for a tombstone
        headers       int32   how many
        value         binary  null without --values
        """
    ),
    ("connection", "direction", "frame_offset", "topic_id", "topic", "partition", "batch",
     "offset"),
)  # fmt: skip

FETCHES: Final = Table(
    "fetches",
    "Every partition of a Fetch, including those that its session remembers (KIP-227).",
    columns(
        """
        connection       int64   id of the connection
        request_offset   int64   of the request within its direction
        requested_ns     int64   time of the request
        broker           string  host:port, or the broker's id in a journal
        client_id        string  of the request's header
        session_id       int32   in the request; 0 for none; null below version 7
        session_epoch    int32   in the request; null below version 7
        complete         bool    false where the session's start or a part of it was not captured
        topic            string  name; null if only the id is known by then
        topic_id         string  null where the version has names
        partition        int32   null in the one row of a fetch without any that are known
        fetch_offset     int64   the first offset that is wanted
        remembered       bool    true where the session has it, and this request does not name it
        """
    ),
    ("connection", "request_offset", "topic_id", "topic", "partition"),
)

REASSIGNMENTS: Final = Table(
    "reassignments",
    "Reassignments, with a row for each partition, from the request to the end (KIP-455).",
    columns(
        """
        cluster                string  its id; else the least address of a broker of it
        topic                  string  name; null where a draft's cancellation names none
        partition              int32   null likewise
        outcome                string  completed, cancelled, replaced, refused, in progress, unknown
        asked_ns               int64   time of the request; null where it was not captured
        answered_ns            int64   time of its response; null without one
        connection             int64   of the request; null if it was not captured
        request_offset         int64   of the request within its direction
        client_id              string  of the request's header
        software_name          string  from ApiVersions; null without it
        software_version       string  likewise
        dialect                string  kafka, or the draft whose bytes they are
        target                 int32s  replicas requested; null: a cancellation
        before                 int32s  replicas before, as Metadata or a listing had them
        rf_change              int32   replicas to be gained, or lost if negative; null if unknown
        allow_rf_change        bool    of the request (KIP-860); null below version 1
        error                  string  name of the code that refused it
        error_message          string  the broker's text
        first_listed_ns        int64   time of the first listing that has it
        last_listed_ns         int64   time of the last
        adding                 int32s  in the last listing; null where it was never listed
        removing               int32s  likewise
        ended_ns               int64   when its end was seen; null if it was not
        evidence               string  why it counts as ended (see the documentation)
        ended_connection       int64   that cancelled or replaced it, or showed it completed
        ended_request_offset   int64   of that request
        ended_client_id        string  of that request's header
        """
    ),
    ("cluster", "topic", "partition", "asked_ns", "connection", "request_offset", "ended_ns"),
)

ELECTIONS: Final = Table(
    "elections",
    "Leader elections (ElectLeaders), with a row for each partition.",
    columns(
        """
        connection      int64   id of the connection
        request_offset  int64   of the request within its direction
        requested_ns    int64   time of the request
        broker          string  host:port, or the broker's id in a journal
        client_id       string  of the request's header
        type            string  preferred, unclean, or the number
        all             bool    whether the request was for all partitions, not this one by name
        topic           string  null if there is none: all were requested, and none moved
        partition       int32   null likewise
        answered        bool    whether the response has the partition
        error           string  name of the code, NONE for an election; null if not answered
        error_message   string  the broker's text
        """
    ),
    ("connection", "request_offset", "topic", "partition"),
)
