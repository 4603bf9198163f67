"""From a mock's journal to a transcript, through the file's text."""

from collections.abc import Iterable
from typing import Any

from kproto.journal import Entry
from kproto.transcript import Transcript, read_transcript, write_transcript
from wiredump.extraction import Hiding, chosen, transcript_of
from wiredump.sources.journals import JournalItems

__all__ = ["extracted"]


def extracted(
    journal: Iterable[Entry], *, hiding: Hiding | None = None, **which: Any
) -> Transcript:
    """``which``: as ``wiredump.extraction.chosen`` takes it."""
    items = JournalItems()
    choices = chosen(items.read(journal), **which)
    transcript = transcript_of(choices, hiding or Hiding())
    return read_transcript(list(write_transcript(transcript)))
