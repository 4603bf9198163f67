"""Mirror a journal to a topic: python journal_to_topic.py JOURNAL.jsonl BOOTSTRAP TOPIC

Each frame becomes the value of a record. Its key is the connection, so that one partition has the
frames of a connection in their order; the header `journal` has the entry without the frame, as
JSON. Needs kproto and confluent-kafka (pip install kproto confluent-kafka).
"""

import sys

import msgspec
from confluent_kafka import Producer

from kproto.journal import read_journal


def main(journal: str, bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    with open(journal, encoding="utf-8") as lines:
        for entry in read_journal(lines):
            rest = msgspec.json.encode(msgspec.structs.replace(entry, raw=b""))
            while True:
                try:
                    producer.produce(
                        topic,
                        key=f"{entry.broker_id}-{entry.connection_id}",
                        value=entry.raw or None,
                        headers={"journal": rest},
                        timestamp=entry.timestamp_ns // 1_000_000,
                    )
                    break
                except BufferError:  # until the queue has room
                    producer.poll(1)
    if producer.flush(60):
        sys.exit("some frames were not acknowledged")


if __name__ == "__main__":
    main(*sys.argv[1:])
