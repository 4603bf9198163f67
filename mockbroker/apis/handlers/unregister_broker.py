"""UnregisterBroker (64): the controller forgets a broker of a KRaft cluster (KIP-500).

A broker that still runs leaves all of its partitions, and is registered again once it restarts.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from kproto.messages.unregister_broker_response import UnregisterBrokerResponse
from mockbroker.apis.common.authorization import cluster_refusal
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, always, apply_first, rows_of_release

__all__ = ["unregister_broker"]


def _leave_out_text(subject: UnregisterBrokerResponse) -> None:
    """An effect that leaves the text of an error empty."""
    subject.error_message = ""


_ROWS: Final[tuple[Row[UnregisterBrokerResponse, UnregisterBrokerResponse], ...]] = (
    Row("QUORUM-08", always, (_leave_out_text,), until=(4, 1)),
)


@cache
def _rows(
    release: Release,
) -> tuple[Row[UnregisterBrokerResponse, UnregisterBrokerResponse], ...]:
    return rows_of_release(_ROWS, release)


@register(64, "0")
def unregister_broker(call: Call) -> UnregisterBrokerResponse:
    code, text = cluster_refusal(call) or call.cluster.unregister_broker(call.body.broker_id)
    # Empty, not null, on success.
    answer = UnregisterBrokerResponse(error_code=code, error_message=text or "")
    apply_first(_rows(call.release), answer, answer)
    return answer
