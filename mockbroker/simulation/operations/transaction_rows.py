"""The commands on transactions."""

from __future__ import annotations

from typing import Final

from mockbroker.simulation.operations.arguments import COUNT, PARTITION, WORD, Argument
from mockbroker.simulation.operations.command import Command

__all__ = ["TRANSACTION_ROWS"]

_ID: Final = Argument("transactional_id", WORD, "The transactional id.")
_ID_OR_ALL: Final = Argument(
    "transactional_id", WORD, "The transactional id; without it, all.", optional=True
)

TRANSACTION_ROWS: Final = (
    Command(
        "expire-transaction",
        "Time out a transaction.",
        lambda on, given: on.cluster.expire_transaction(given["transactional_id"]),
        (_ID,),
        details="It is aborted, and its producer fenced: requests get error 90, or 47 where the "
        "client does not know 90 (KIP-588).",
    ),
    Command(
        "abort-transaction",
        "Abort a transaction without fencing its producer.",
        lambda on, given: on.cluster.abort_transaction(given["transactional_id"]),
        (_ID,),
        details="This is what an operator does; the producer's epoch does not change.",
    ),
    Command(
        "fence-producer",
        "Fence a transactional producer: another one initializes its id.",
        lambda on, given: on.cluster.fence_producer(given["transactional_id"]),
        (_ID,),
        details="The epoch is bumped, so the former producer gets error 90. An open transaction "
        "is aborted.",
    ),
    Command(
        "set-producer-epoch",
        "Change the epoch of a transactional producer.",
        lambda on, given: on.cluster.set_producer_epoch(given["transactional_id"], given["epoch"]),
        (_ID, Argument("epoch", COUNT, "The epoch, at most 32766.")),
        details="Past 32766 the producer gets another id.",
    ),
    Command(
        "hold-markers",
        "Hold back the markers of transactions that end.",
        lambda on, given: on.cluster.hold_markers(given["transactional_id"]),
        (_ID_OR_ALL,),
        details="They stay in PrepareCommit or PrepareAbort until `release-markers`: requests get "
        "error 51, and the last stable offset does not advance. Without TRANSACTIONAL-ID, all.",
    ),
    Command(
        "release-markers",
        "Write the held markers.",
        lambda on, given: on.cluster.release_markers(given["transactional_id"]),
        (_ID_OR_ALL,),
        details="Without TRANSACTIONAL-ID, those of all transactions.",
    ),
    Command(
        "write-marker",
        "End a transaction in one partition only.",
        lambda on, given: on.cluster.write_marker(
            given["partition"], given["producer_id"], given["result"]
        ),
        (
            PARTITION,
            Argument("producer_id", COUNT, "The producer's id."),
            Argument("result", WORD, "commit or abort."),
        ),
        details="The transaction coordinator does not learn of it (KIP-664). RESULT is commit or "
        "abort.",
    ),
)
