"""kproto's own decoders, each called directly, whichever engine is in use: generated Python
(``pure``), the C extension (``native``) and the reference codec (``reference``).

All must agree exactly, including an error's offset, path and text. ``kproto.framing`` splits the
stream for all. An exception other than DecodeError, or a message that cannot be written back, is a
verdict of its own: ``died``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from kproto import Dialect, reference
from kproto.codec import registry
from kproto.codec.message import Message
from kproto.errors import DecodeError, KprotoError, RemoteProtocolError
from kproto.framing import SIZE_LENGTH, FrameSplitter
from kproto.partial import FrameLayout, request_layout, response_layout
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Sample

__all__ = ["Codec", "Cut", "Decoder", "codecs", "cut"]

SectionDecoder = Callable[[type[Message], int, bytes, int], tuple[str, int]]
"""(class, version, data, offset) -> (what it is written back as, in hex; end)."""


class Decoder(Protocol):
    """A participant. ``judge`` answers in order."""

    name: str

    def judge(self, samples: Sequence[Sample]) -> list[Verdict]: ...

    def close(self) -> None: ...


class Cut(NamedTuple):
    """A frame as the splitter returned it with its layout, or the verdict it ends with."""

    frame: bytes
    layout: FrameLayout | None
    verdict: Verdict | None


def cut(dialect: Dialect, sample: Sample) -> Cut:
    """Split a frame. A size that promises more than arrived means waiting; bytes behind a frame
    belong to the next one and are not judged."""
    splitter = FrameSplitter(keep_size=True)
    splitter.feed(sample.frame)
    try:
        frame = splitter.next_frame()
    except RemoteProtocolError as error:
        return Cut(sample.frame, None, Verdict("rejected", text=str(error)))
    if frame is None:
        return Cut(sample.frame, None, Verdict("gave up", text="waits for the rest of the frame"))
    try:
        if sample.direction == "request":
            layout = request_layout(dialect, frame)
        else:
            layout = response_layout(dialect, api_key=sample.api_key, api_version=sample.version)
    except KprotoError as error:
        return Cut(frame, None, Verdict("rejected", text=str(error)))
    return Cut(frame, layout, None)


class Codec:
    """One of kproto's decoders. ``part`` decodes a header or a body."""

    def __init__(self, name: str, dialect: Dialect, part: SectionDecoder) -> None:
        self.name = name
        self._dialect = dialect
        self._part = part

    def judge(self, samples: Sequence[Sample]) -> list[Verdict]:
        return [self._judge(sample) for sample in samples]

    def close(self) -> None:
        pass

    def _judge(self, sample: Sample) -> Verdict:
        frame, layout, verdict = cut(self._dialect, sample)
        if layout is None:
            assert verdict is not None
            return verdict
        try:
            header, at = self._part(layout.header, layout.header_version, frame, SIZE_LENGTH)
            body, end = self._part(layout.body, layout.version, frame, at)
            if end != len(frame):
                raise registry.trailing_bytes(frame, end)
        except DecodeError as error:
            return Verdict("rejected", text=str(error))
        except Exception as error:  # a defect, as no peer's bytes may cause it
            return Verdict("died", text=f"{type(error).__name__}: {error}")
        return Verdict("accepted", f"{header} {body}")


def codecs(dialect: Dialect) -> list[Codec]:
    """Return the codecs of this machine: ``native`` only if the extension is in use."""
    made = [Codec("pure", dialect, _Generated().part)]
    if registry.compiled_plan(dialect.message("ResponseHeader"), 0) is not None:
        made.append(Codec("native", dialect, _native))
    return [*made, Codec("reference", dialect, _reference)]


class _Generated:
    """Caches generated codecs, as generating one takes longer than running it."""

    def __init__(self) -> None:
        self._made: dict[tuple[type[Message], int], tuple[Any, Any]] = {}

    def part(self, cls: type[Message], version: int, data: bytes, at: int) -> tuple[str, int]:
        key = cls, version
        if key not in self._made:
            decode, encode = (
                registry.generated_decoder(cls, version),
                registry.generated_encoder(cls, version),
            )
            self._made[key] = decode, encode
        decode, encode = self._made[key]
        message, end = decode(data, at)
        return encode(message).hex(), end


def _native(cls: type[Message], version: int, data: bytes, at: int) -> tuple[str, int]:
    plan = registry.compiled_plan(cls, version)
    assert plan is not None, "not the engine that is in use"
    message, end = plan.decode(data, at)
    return plan.encode(message).hex(), end


_LEFT_OVER: Final = "bytes left over after the message: "


def _reference(cls: type[Message], version: int, data: bytes, at: int) -> tuple[str, int]:
    schema = registry.schema_of(cls)
    inside, end = data[at:], len(data)
    try:
        try:
            tree = reference.decode(schema, version, inside)
        except DecodeError as error:
            if not error.problem.startswith(_LEFT_OVER):
                raise
            end = at + error.offset
            tree = reference.decode(schema, version, inside, allow_trailing=True)
    except DecodeError as error:
        raise DecodeError(error.problem, offset=at + error.offset, path=error.path) from None
    return reference.encode(schema, version, tree).hex(), end
