"""Which handlers a listener of a dialect can use. No sockets, and no opinion on any single api."""

from __future__ import annotations

from kproto.dialects import DIALECTS, AutoDialect, Dialect, dialect
from mockbroker.apis.registry import DRAFT_HANDLERS, HANDLERS, Handler

__all__ = ["dialect_handlers"]


def dialect_handlers(codec: Dialect) -> dict[int, Handler]:
    """The handlers whose messages this dialect has unchanged, for those build released classes,
    and those written for it. What else a draft replaced is answered by scripts only."""
    released = dialect("kafka").apis
    usable = {
        key: handler
        for key, handler in HANDLERS.items()
        if key in codec.apis and codec.apis[key] == released[key]
    }
    if isinstance(codec, AutoDialect):
        # Requests come with the dialect that read them; these are the keys no release has.
        usable |= {
            key: each
            for (_, key), each in DRAFT_HANDLERS.items()
            if key in codec.apis and key not in released
        }
    elif codec.name in DIALECTS:
        own = {key: each for (name, key), each in DRAFT_HANDLERS.items() if name == codec.name}
        # A user's own dialect is not one of ours, whatever it is called.
        if codec is dialect(codec.name):
            usable |= own
        usable |= {key: own[known] for key, known in codec.renumbered.items() if known in own}
    return usable
