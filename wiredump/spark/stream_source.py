"""``spark.readStream.format("kafka_capture")``: rotating captures as a stream of packets.

::

    from wiredump.spark import KafkaCapture
    spark.dataSource.register(KafkaCapture)
    packets = spark.readStream.format("kafka_capture").load("captures/")

Rows are as those of ``spark.read`` (``source``); ``capture`` counts the files of the stream. The
path is a folder or a pattern, a file is taken once there is a newer one, and the option
``lastFile`` (true) takes the newest too: for captures that nobody writes to any more.
``maxFilesPerTrigger`` bounds a batch, ``splitBytes`` and ``whole`` are as in ``source``.

An offset is how many files were taken and which was the last, so that a query goes on from its
checkpoint: the same offsets are the same files, or an error that says which are gone.
"""

from __future__ import annotations

import msgspec

from wiredump.spark.rotation import (
    SLACK_NS,
    Rotated,
    Rotation,
    RotationError,
    complete,
    in_order,
)

__all__ = ["CaptureStream", "Offset"]


class Offset(msgspec.Struct, frozen=True):
    """``files`` have been read, and ``path`` is the last of them; ``first_ns`` is the time of its
    first packet, 0 without packets."""

    files: int = 0
    path: str = ""
    first_ns: int = 0

    @property
    def last(self) -> Rotated | None:
        """That file, as far as an offset knows it."""
        return Rotated(self.path, 0, 0, self.first_ns or None) if self.files else None


class CaptureStream:
    """Offsets, and the files between them. Spark calls ``latest`` repeatedly and, after a restart,
    ``between`` once more."""

    def __init__(self, where: str, *, last_file: bool = False) -> None:
        self._rotation = Rotation(where)
        self._last_file = last_file
        self._target: Offset | None = None

    def latest(self, start: Offset, most: int | None) -> Offset:
        """Return the offset behind at most this many complete files from ``start`` on."""
        files = self._behind(start)
        if not self._last_file:
            files = complete(files)
        if self._target is not None:
            files = files[: self._target.files - start.files]
        files = files if most is None else files[:most]
        return _offset(start.files + len(files), files[-1]) if files else start

    def stop_at(self, start: Offset) -> None:
        """Leave everything newer to another run."""
        self._target = self.latest(start, None)

    def between(self, start: Offset, end: Offset) -> list[tuple[int, str]]:
        """Return numbers and paths of files. Raises RotationError if they do not exist."""
        files = self._behind(start)[: end.files - start.files]
        if end.files <= start.files:
            return []
        if not files or _offset(end.files, files[-1]) != end:
            raise RotationError(
                f"{self._rotation.where}: some of the files {start.files} to {end.files - 1} of "
                f"the stream, the last of which is {end.path}, no longer exist"
            )
        return [(number, each.path) for number, each in enumerate(files, start.files)]

    def _behind(self, start: Offset) -> list[Rotated]:
        last = start.last
        files = self._rotation.files()
        return in_order([each for each in files if _is_behind(each, last)], last)


def _offset(count: int, last: Rotated) -> Offset:
    return Offset(count, last.path, last.first_ns or 0)


def _is_behind(each: Rotated, last: Rotated | None) -> bool:
    """Whether it was written after ``last``: by its name or, in a ring, by its time."""
    if last is None:
        return True
    if (each.path, each.first_ns) == (last.path, last.first_ns):
        return False
    if each.first_ns is None or last.first_ns is None:
        return each.name > last.name
    if each.name > last.name:
        return each.first_ns > last.first_ns - SLACK_NS
    return each.first_ns > last.first_ns + SLACK_NS
