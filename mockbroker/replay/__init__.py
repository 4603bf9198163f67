"""Answers out of a transcript (``kproto.transcript``) in the place of the broker's own: what a
client met once, met again. No sockets, no files.

``composing`` answers requests about topics and partitions by each of these, ``matching`` says which
recorded exchange answers any other, ``addresses`` puts the mock's own hosts and ports into the
answers. ``serving.replay_stage`` is where the dispatcher meets them.
"""

from mockbroker.replay.broker_addresses import restamp
from mockbroker.replay.composition import Composed, Composition
from mockbroker.replay.matching import Cursor, Found, Recording
from mockbroker.replay.recorded_parts import RecordedParts, codec_of, forms_at, readable

__all__ = [
    "Composed",
    "Composition",
    "Cursor",
    "Found",
    "RecordedParts",
    "Recording",
    "codec_of",
    "forms_at",
    "readable",
    "restamp",
]
