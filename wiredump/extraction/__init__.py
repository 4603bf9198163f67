"""Extract connections from a capture as a transcript (``kproto.transcript``) without secrets, host
names and contents of records and, on request, without any names.

Pure: items go in, a transcript comes out. ``choosing`` selects connections, ``transcripts``
converts them, ``fields`` knows which fields of a message to hide, ``hiding`` and ``emptied``
replace them.
"""

from wiredump.extraction.choosing import Choice, chosen
from wiredump.extraction.hiding import Hiding
from wiredump.extraction.transcripts import transcript_of

__all__ = ["Choice", "Hiding", "chosen", "transcript_of"]
