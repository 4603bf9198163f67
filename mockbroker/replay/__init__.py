"""Answers out of a transcript (``kproto.transcript``) in the place of the broker's own: what a
client met once, met again. No sockets, no files.

``matching`` says which recorded exchange answers a request, ``addresses`` puts the mock's own hosts
and ports into the answers. ``serving.replay_answers`` is where the dispatcher meets both.
"""

from mockbroker.replay.addresses import restamp
from mockbroker.replay.matching import Cursor, Found, Recording

__all__ = ["Cursor", "Found", "Recording", "restamp"]
