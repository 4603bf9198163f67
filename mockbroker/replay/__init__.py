"""Answers out of a transcript (``kproto.transcript``) instead of the broker's own.

``composition`` answers requests that name topics and partitions, from what was recorded for each of
them. ``matching`` finds the recorded exchange that answers any other request. ``broker_addresses``
puts the mock's hosts and ports into the answers. ``serving.replay_stage`` uses them.
"""

from mockbroker.replay.broker_addresses import restamp
from mockbroker.replay.composition import ComposedAnswer, Composition
from mockbroker.replay.matching import Cursor, RecordedMatch, Recording
from mockbroker.replay.recorded_parts import RecordedParts, codec_of, forms_at, readable

__all__ = [
    "ComposedAnswer",
    "Composition",
    "Cursor",
    "RecordedMatch",
    "RecordedParts",
    "Recording",
    "codec_of",
    "forms_at",
    "readable",
    "restamp",
]
