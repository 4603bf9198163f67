"""Choose and combine mutations of a frame."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

import kproto
from kproto import Dialect
from kproto.framing import SIZE_LENGTH, encode_frame
from kspec.clientfuzz.mutate import frames, lengths, tags, values
from kspec.clientfuzz.mutate.changes import Change, Direction, Mutation, MutationError
from kspec.clientfuzz.mutate.draws import Draws, seed_from
from kspec.clientfuzz.mutate.tree import FrameTree, frame_tree
from mockbroker.apis.common.version_cast import recast

__all__ = ["KINDS", "Kind", "mutate", "mutation_of", "written_at"]

_TRIES: Final = 12
"""Number of attempts with a kind. Each picks a new place, which may not allow the mutation."""
_VERSION: Final = "version"


class Kind(NamedTuple):
    """``make`` is None for the one kind that is not a change of bytes: another version."""

    about: str
    make: Callable[[FrameTree, Draws], Change | None] | None


KINDS: Final[dict[str, Kind]] = {
    "length-above": Kind("a length or count that is one too high", lengths.length_above),
    "length-below": Kind("a length or count that is one too low", lengths.length_below),
    "length-zero": Kind("a length or count of 0 in front of data", lengths.length_zero),
    "length-negative": Kind("a length or count of -2", lengths.length_negative),
    "length-huge": Kind("the highest possible length or count", lengths.length_huge),
    "length-remaining": Kind(
        "a length or count of one more than the bytes left", lengths.length_remaining
    ),
    "null-allowed": Kind("null where the version allows it", lengths.null_allowed),
    "null-forbidden": Kind("null where the version does not allow it", lengths.null_forbidden),
    "varint-padded": Kind("a varint in more bytes than necessary", lengths.varint_padded),
    "varint-above": Kind("a varint above 2147483647", lengths.varint_above),
    "varint-long": Kind("a varint of six or ten bytes", lengths.varint_long),
    "tag-unknown": Kind("an unknown tagged field", tags.tag_unknown),
    "tag-twice": Kind("the same tag twice", tags.tag_twice),
    "tag-order": Kind("tags in descending order", tags.tag_order),
    "tag-count": Kind("a wrong count of tagged fields", tags.tag_count),
    "tag-size": Kind("a tagged field whose size is wrong", tags.tag_size),
    "tags-missing": Kind("no tagged section where the version has one", tags.tags_missing),
    "number": Kind("a number at a limit of its range, or next to the true one", values.number),
    "real": Kind("a float64 that is NaN, infinite or otherwise special", values.real),
    "bool": Kind("the opposite boolean, or an invalid one", values.truth),
    "presence": Kind("a different marker of a nullable struct", values.presence),
    "uuid": Kind("a different UUID, such as the zero UUID", values.uuid_),
    "text": Kind("an unusual text with its true length", values.text),
    "text-invalid": Kind("a text that is not UTF-8", values.text_invalid),
    "element-twice": Kind("a repeated element of an array", values.element_twice),
    "element-gone": Kind("a missing element of an array", values.element_gone),
    "error-known": Kind("an error code of Kafka", values.error_known),
    "error-unknown": Kind("an unknown error code", values.error_unknown),
    "cut": Kind("a truncated frame with its true size", frames.cut),
    "short": Kind("a truncated frame with the size of the whole one", frames.short),
    "trailing": Kind("bytes behind the body, counted by the size", frames.trailing),
    "behind": Kind("bytes behind the frame, not counted by the size", frames.behind),
    "size": Kind("a wrong frame size", frames.size),
    "correlation-id": Kind("a different correlation id", frames.correlation_id),
    "flip": Kind("a changed byte, whatever it means", frames.flip),
    _VERSION: Kind("the message in the layout of another version", None),
}
"""Every kind of mutation. All kinds that apply to the frame are equally likely."""


def mutate(
    frame: bytes,
    api_key: int,
    version: int,
    rng: random.Random,
    *,
    depth: int = 1,
    direction: Direction = "response",
    dialect: Dialect | str = "kafka",
    kinds: Collection[str] | None = None,
) -> Mutation:
    """Mutate a valid frame, size included, in ``depth`` ways, of all kinds or of ``kinds``.

    The result's seed, drawn from ``rng``, gives the same mutation through ``mutation_of``.
    ``version`` is the API version of the message, for a request also stated in its header. Raises
    DecodeError if the frame is invalid, UnsupportedVersionError if the dialect lacks the key or
    version, and MutationError if none of ``kinds`` applies to the frame.
    """
    return mutation_of(
        frame, api_key, version, seed_from(rng),
        depth=depth, direction=direction, dialect=dialect, kinds=kinds,
    )  # fmt: skip


def mutation_of(
    frame: bytes,
    api_key: int,
    version: int,
    seed: int,
    *,
    depth: int = 1,
    direction: Direction = "response",
    dialect: Dialect | str = "kafka",
    kinds: Collection[str] | None = None,
) -> Mutation:
    """Like ``mutate``, with a seed."""
    codec = kproto.dialect(dialect) if isinstance(dialect, str) else dialect
    unknown = sorted(set(kinds or ()) - KINDS.keys())
    if unknown:
        raise MutationError(f"unknown kinds of mutation: {', '.join(unknown)}")
    draws = Draws(seed)
    tree = frame_tree(frame, codec, direction, api_key, version)
    base, as_version = frame, None
    changes: list[Change] = []
    order = draws.shuffled([name for name in KINDS if kinds is None or name in kinds])
    for name in order:
        made = KINDS[name].make
        if len(changes) + (as_version is not None) >= depth:
            break
        if made is None:
            if changes:
                continue  # first or not at all, as changes are applied to its bytes
            as_version = _another_version(tree, draws)
            if as_version is not None:
                base = written_at(frame, codec, direction, api_key, version, as_version)
                tree = _tree_at(base, codec, direction, api_key, as_version, tree)
            continue
        change = _drawn(made, tree, draws, changes)
        if change is not None:
            changes.append(change)
    if not changes and as_version is None:
        raise MutationError(f"none of {', '.join(order)} applies to this frame")
    return Mutation(
        seed, direction, codec.name, api_key, version, frame, base, tuple(changes), as_version
    )


def _drawn(
    make: Callable[[FrameTree, Draws], Change | None],
    tree: FrameTree,
    draws: Draws,
    others: list[Change],
) -> Change | None:
    for _ in range(_TRIES):
        change = make(tree, draws)
        if change is not None and change.fits(others) and _alters(tree.frame, change):
            return change
    return None


def _alters(frame: bytes, change: Change) -> bool:
    if change.size is not None or change.behind:
        return True
    return any(frame[e.offset : e.offset + e.length] != e.data for e in change.edits)


# ---- another version -----------------------------------------------------------------------------


def _another_version(tree: FrameTree, draws: Draws) -> int | None:
    """Return a version at which the same message has other bytes."""
    codec, api_key = tree.dialect, tree.api_key
    valid = codec.api(api_key).response.VALID_VERSIONS
    if tree.direction == "request":
        valid = codec.api(api_key).request.VALID_VERSIONS
    now = tree.layout.version
    for version in draws.shuffled([each for each in valid if each != now]):
        other = written_at(tree.frame, codec, tree.direction, api_key, now, version)
        if other != tree.frame:
            return version
    return None


def written_at(
    frame: bytes, codec: Dialect, direction: Direction, api_key: int, version: int, other: int
) -> bytes:
    """Return the message of ``frame`` in the bytes of another version, without the fields it lacks.

    A response gets that version's header too. A request keeps its own, which states the old
    version.
    """
    if direction == "response":
        header, body = codec.decode_response(frame, api_key=api_key, api_version=version)
        recast(body, other)
        flexible = codec.api(api_key).response_header_version(other) in header.FLEXIBLE_VERSIONS
        return bytes(
            codec.encode_response(
                body,
                api_version=other,
                correlation_id=header.correlation_id,
                unknown_tags=header.unknown_tags if flexible else None,
            )
        )
    request_header, body = codec.decode_request(frame)
    recast(body, other)
    header_version = codec.api(api_key).request_header_version(version)
    return encode_frame(request_header.encode(header_version) + body.encode(other))


def _tree_at(
    base: bytes, codec: Dialect, direction: Direction, api_key: int, version: int, old: FrameTree
) -> FrameTree:
    """Find the fields of a request whose header states the old version: its header from this frame,
    its body from a frame with the new version."""
    if direction == "response":
        return frame_tree(base, codec, direction, api_key, version)
    number = version.to_bytes(2, "big", signed=True)
    at = SIZE_LENGTH + 2
    api = codec.api(api_key)
    if api.request_header_version(version) != api.request_header_version(old.layout.version):
        # No valid frame has this header with this body, so only whole-frame mutations apply.
        return FrameTree(
            base, codec, direction, api_key, old.layout, old.body_at, old.header,
            old.body._replace(spans=[]),
        )  # fmt: skip
    tree = frame_tree(base[:at] + number + base[at + 2 :], codec, direction, api_key, version)
    return FrameTree(
        base, codec, direction, api_key, tree.layout, tree.body_at, tree.header, tree.body
    )
