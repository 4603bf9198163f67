"""UnregisterBroker (64): the controller forgets a broker of a KRaft cluster (KIP-500).

A broker that still runs leaves all of its partitions, and is registered again once it restarts.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kproto.messages.unregister_broker_response import UnregisterBrokerResponse
from mockbroker.apis.common.requirements import cluster_operation
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases.release import Release, by_release
from mockbroker.simulation.releases.rows import Row, always, apply_first, rows_of_release
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["unregister_broker"]


_TEXTS_LEFT_OUT: Final[tuple[Row[None, None], ...]] = (Row("QUORUM-08", always, (), until=(4, 1)),)


@by_release
def _leaves_texts_out(release: Release) -> bool:
    return apply_first(rows_of_release(_TEXTS_LEFT_OUT, release), None, None)


def _shown(call: Call, text: str | None) -> str:
    # Empty, not null, on success.
    return "" if text is None or _leaves_texts_out(call.release) else text


_ALTER: Final = cluster_operation(AclOperation.ALTER)


@register(
    64,
    "0",
    requires=(replace(_ALTER, text=lambda call, code: _shown(call, _ALTER.text(call, code))),),
)
def unregister_broker(call: Call) -> UnregisterBrokerResponse:
    code, text = call.cluster.brokers.unregister(call.body.broker_id)
    return UnregisterBrokerResponse(error_code=code, error_message=_shown(call, text))
