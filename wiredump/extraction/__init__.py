"""Connections out of a capture, as a transcript (``kproto.transcript``) without what must not
leave the house: secrets, host names, what records say, and, where asked for, every name.

Pure: items go in, a transcript comes out. ``choosing`` finds connections, ``transcripts`` tells
them, ``fields`` knows where in a message the things to hide are, ``hiding`` and ``emptied`` replace
them.
"""

from wiredump.extraction.choosing import Choice, chosen
from wiredump.extraction.hiding import Hiding
from wiredump.extraction.transcripts import transcript_of

__all__ = ["Choice", "Hiding", "chosen", "transcript_of"]
