"""The handlers that a listener of a dialect can use."""

from __future__ import annotations

from kproto.dialects import DIALECTS, AutoDialect, Dialect, dialect
from mockbroker.apis.common.extended_apis import extended
from mockbroker.apis.registry import DRAFT_HANDLERS, HANDLERS, Handler

__all__ = ["dialect_handlers"]


def dialect_handlers(codec: Dialect) -> dict[int, Handler]:
    """Return the handlers whose messages the dialect has unchanged or extends, and those written
    for it.

    Other APIs that a draft changed can only be answered by scripts.
    """
    released = dialect("kafka").apis
    usable = {
        key: handler
        for key, handler in HANDLERS.items()
        if key in codec.apis and codec.apis[key] == released[key]
    }
    if codec.name not in DIALECTS or codec is not dialect(codec.name):
        for key, handler in HANDLERS.items():
            if key in codec.apis and key not in usable:
                found = extended(handler, codec.apis[key], released[key])
                if found is not None:
                    usable[key] = found
    if isinstance(codec, AutoDialect):
        # Each request has the dialect that decoded it. These are the keys that no release has.
        usable |= {
            key: each
            for (_, key), each in DRAFT_HANDLERS.items()
            if key in codec.apis and key not in released
        }
    elif codec.name in DIALECTS:
        own = {key: each for (name, key), each in DRAFT_HANDLERS.items() if name == codec.name}
        # A user's own dialect may have the name of one of ours.
        if codec is dialect(codec.name):
            usable |= own
        usable |= {key: own[known] for key, known in codec.renumbered.items() if known in own}
    return usable
