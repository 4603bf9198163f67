"""Captures of which nothing can be read: what to do about them, for batches and streams.

A file is bad if it cannot be opened, changes while it is read, is not a capture, or has no TCP
segment. A damaged capture is not bad: what can be read of it is, and the account counts the rest.

::

    bad = BadFiles("quarantine", Location(out), run)
    bad.found(path, reason)     raises BadFileError with ``fail``
    bad.settle()                once the tables are complete: moves the files, with ``quarantine``
    bad.found_so_far            the reasons by path

``settle`` may be repeated, as after a kill.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

import msgspec

from kproto.errors import KprotoError
from wiredump.storage import Location, shown

__all__ = [
    "QUARANTINE",
    "BadFileError",
    "BadFiles",
    "OnBadFile",
    "Quarantined",
]

OnBadFile: TypeAlias = Literal["fail", "skip", "quarantine"]
"""Write nothing; write the tables without the file; do that, and move the file away."""
QUARANTINE: Final = "_quarantine"
"""The folder in that of the tables to which bad files are moved."""


class BadFileError(KprotoError):
    """Nothing can be read of a file. Nothing was written."""


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a quarantined file, stored beside it as ``NAME.json``. ``path`` is its
    former place."""

    path: str
    reason: str
    run: str


class BadFiles:
    """The bad files of a run; ``folder`` gets those that are quarantined. The reasons of files that
    were ``found_so_far`` may be given."""

    def __init__(
        self, policy: OnBadFile, folder: Location, run: str,
        found_so_far: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._policy, self._folder, self._run = policy, folder / QUARANTINE, run
        self.found_so_far = dict(found_so_far or {})

    def found(self, path: str, reason: str) -> None:
        """Note a bad file. Raises BadFileError if the policy is to fail."""
        if self._policy == "fail":
            raise BadFileError(
                f"{shown(path)}: nothing could be read: {reason} (--on-bad-file skip writes the "
                "tables without it)"
            )
        self.found_so_far[path] = reason

    def settle(self) -> None:
        """Move the files, if the policy is to quarantine; one that vanished is only described."""
        if self._policy != "quarantine":
            return
        for path, reason in self.found_so_far.items():
            source = Location(path)
            # Files of one name may come from several folders.
            mark = blake2b(path.encode(errors="surrogateescape"), digest_size=4).hexdigest()
            target = self._folder / f"{mark}-{source.name}"
            about = Quarantined(path=shown(path), reason=reason, run=self._run)
            self._folder.mkdir()
            (self._folder / f"{target.name}.json").replace_bytes(msgspec.json.encode(about))
            with suppress(FileNotFoundError):
                source.publish(target)
                source.unlink(missing_ok=True)  # an object store has copied it
