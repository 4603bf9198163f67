"""Mutators: the same by seed, never the frame they were given, true in what they tell, of every
kind, and never outside the bytes they name."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import product

import pytest

import kproto
from kproto.annotate import response_fields
from kproto.codec.registry import schema_of
from kproto.codec.structs import MessageStruct
from kproto.errors import DecodeError, UnsupportedVersionError
from kproto.framing import SIZE_LENGTH
from kspec.clientfuzz.bases import bases
from kspec.clientfuzz.mutate import KINDS, Mutation, MutationError, mutate, mutation_of
from kspec.clientfuzz.mutate.draws import Draws
from kspec.clientfuzz.mutate.mutation import written_at
from kspec.clientfuzz.mutate.tree import frame_tree
from kspec.vectors.frames import wrapping
from kspec.vectors.values import instances

KAFKA = kproto.dialect("kafka")

ONLY_FLEXIBLE = {
    "varint-padded", "varint-above", "varint-long", "tag-unknown", "tag-twice", "tag-order",
    "tag-count", "tag-size", "tags-missing",
}  # fmt: skip
RARE = {"real": 48, "presence": 75}
"""Kinds that few messages have a place for, and an api key that does: DescribeClientQuotas has a
float64, DescribeTopicPartitions a nullable struct."""


def good_frame(api_key: int, version: int, direction: str = "response", pattern: str = "filled"):
    cls = getattr(KAFKA.api(api_key), direction)
    patterns = dict(instances(cls, schema_of(cls), version))
    body = patterns.get(pattern, patterns["default"]).encode(version)
    return wrapping(KAFKA, cls, version, unknown_tags=False).wrap(body)[0]


def some_frames(rng: random.Random, count: int) -> Iterator[tuple[bytes, int, int, str]]:
    for _ in range(count):
        api_key = rng.choice(sorted(KAFKA.apis))
        direction = rng.choice(["response", "request"])
        version = rng.choice([*getattr(KAFKA.api(api_key), direction).VALID_VERSIONS])
        pattern = rng.choice(["filled", "filled", "null", "least", "unknown-tags"])
        yield good_frame(api_key, version, direction, pattern), api_key, version, direction


def test_properties_of_every_mutation(rng):
    for frame, api_key, version, direction in some_frames(rng, 120):
        depth = rng.randint(1, 3)
        made = mutate(frame, api_key, version, rng, depth=depth, direction=direction)
        assert made.frame != frame
        assert made.mutated == made.frame
        assert 1 <= len(made.kind.split("+")) <= depth
        again = mutation_of(frame, api_key, version, made.seed, depth=depth, direction=direction)
        assert again == made
        read = Mutation.from_json(made.to_json())
        assert (read, read.frame) == (made, made.frame)
        assert made.onto(frame, made.base).frame == made.frame
        tells_the_truth(made)


def tells_the_truth(made: Mutation) -> None:
    """Outside its edits the frame is what it was; the size is true unless a change says not."""
    edits = [edit for change in made.changes for edit in change.edits]
    edits.sort(key=lambda edit: (edit.offset, edit.length))  # an insertion comes first
    at, out = 4, 4
    for edit in edits:
        assert edit.offset >= at, "edits overlap"
        assert made.frame[out : out + edit.offset - at] == made.base[at : edit.offset]
        out += edit.offset - at
        assert made.frame[out : out + len(edit.data)] == edit.data
        out, at = out + len(edit.data), edit.offset + edit.length
    rest = made.base[at:]
    assert made.frame[out : out + len(rest)] == rest
    whole = out + len(rest)
    assert made.frame[whole:] == b"".join(change.behind for change in made.changes)
    said = [change.size for change in made.changes if change.size is not None]
    size = int.from_bytes(made.frame[:4], "big", signed=True)
    assert size == (said[0] if said else whole - 4)


@pytest.mark.parametrize(("api_key", "version", "flexible"), [(3, 12, True), (3, 8, False)])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_reached(kind, api_key, version, flexible):
    frame = good_frame(api_key, version)
    if kind in RARE:
        api_key, version = RARE[kind], KAFKA.api(RARE[kind]).response.VALID_VERSIONS.highest
        frame = good_frame(api_key, version)
    elif kind == "uuid" and not flexible:
        with pytest.raises(MutationError, match="none of uuid"):
            mutation_of(frame, api_key, version, 1, kinds=[kind])
        return
    elif kind in ONLY_FLEXIBLE and not flexible:
        with pytest.raises(MutationError, match=f"none of {kind}"):
            mutation_of(frame, api_key, version, 1, kinds=[kind])
        return
    for seed in range(8):
        made = mutation_of(frame, api_key, version, seed, kinds=[kind])
        assert made.kind == kind
        assert made.frame != frame


@pytest.mark.slow
def test_no_kind_is_left_out_of_what_is_drawn():
    frame = good_frame(3, 12)
    rng, drawn = random.Random(1), set()
    for _ in range(600):
        drawn.update(mutate(frame, 3, 12, rng, depth=2).kind.split("+"))
    assert drawn == KINDS.keys() - RARE.keys()


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - RARE.keys()))
def test_valid_ones_decode_and_broken_ones_do_not(kind):
    """What a kind promises of strict decoding, seen on one message."""
    valid = {
        "number", "uuid", "text", "element-twice", "element-gone", "error-known", "error-unknown",
        "varint-padded", "tag-unknown", "null-allowed", "bool", "behind", "correlation-id",
    }  # fmt: skip
    either = {"flip", "version", "length-below"}
    frame = good_frame(3, 12)
    for seed in range(8):
        made = mutation_of(frame, 3, 12, seed, kinds=[kind])
        data = made.frame.removesuffix(b"".join(change.behind for change in made.changes))
        if kind in valid:
            KAFKA.decode_response(data, api_key=3, api_version=12)
        elif kind not in either:
            with pytest.raises(DecodeError):
                KAFKA.decode_response(data, api_key=3, api_version=12)


def test_a_path_is_that_of_the_field_it_names():
    frame = good_frame(3, 12)
    rows = {(row.path, row.offset) for row in response_fields(KAFKA, frame, api_key=3,
                                                             api_version=12)}  # fmt: skip
    for seed in range(40):
        made = mutation_of(frame, 3, 12, seed, kinds=["number", "text", "uuid"])
        (change,) = made.changes
        assert any((change.path, edit.offset) in rows for edit in change.edits)


def test_what_is_in_a_known_tag_keeps_its_size_true():
    """FetchResponse v16 has node endpoints in a tagged field, texts among them."""
    frame = good_frame(1, 16)
    inside = 0
    for seed in range(60):
        made = mutation_of(frame, 1, 16, seed, kinds=["text"])
        if made.path.startswith("node_endpoints"):
            inside += 1
            _, body = KAFKA.decode_response(made.frame, api_key=1, api_version=16)
            assert body.node_endpoints
    assert inside


def every_struct(holder: MessageStruct) -> Iterator[MessageStruct]:
    yield holder
    for name in holder.__struct_fields__:
        held = getattr(holder, name)
        for each in held if isinstance(held, list) else (held,):
            if isinstance(each, MessageStruct):
                yield from every_struct(each)


@pytest.mark.parametrize("direction", ["response", "request"])
def test_another_version_keeps_unknown_tags_where_it_has_room_for_them(direction):
    """Of every message, with tags in every struct of it and in the header."""
    rooms = set()
    for api_key in sorted(KAFKA.apis):
        cls = getattr(KAFKA.api(api_key), direction)
        tagged = [each for each in bases(KAFKA, api_key, direction)
                  if each.pattern == "unknown-tags"]  # fmt: skip
        for base, other in product(tagged[-1:], cls.VALID_VERSIONS):
            made = written_at(base.frame, KAFKA, direction, api_key, base.version, other)
            if direction == "response":
                header, body = KAFKA.decode_response(made, api_key=api_key, api_version=other)
                room = KAFKA.api(api_key).response_header_version(other) >= 1
                assert bool(header.unknown_tags) is room
            else:
                at = frame_tree(base.frame, KAFKA, "request", api_key, base.version).body_at
                assert made[SIZE_LENGTH:at] == base.frame[SIZE_LENGTH:at]
                body = cls.decode(made[at:], other)
            flexible = other in cls.FLEXIBLE_VERSIONS
            rooms.add(flexible)
            tagged_there = [bool(each.unknown_tags) for each in every_struct(body)]
            assert tagged_there[0] is flexible
            assert flexible or not any(tagged_there)
    assert rooms == {True, False}


def test_onto_a_frame_with_another_correlation_id():
    frame = good_frame(46, 0)
    made = mutation_of(frame, 46, 0, 3, kinds=["correlation-id"])
    old, said = frame[4:8], made.frame[4:8]
    other = frame[:4] + (1000).to_bytes(4, "big") + frame[8:]
    off = int.from_bytes(said, "big", signed=True) - int.from_bytes(old, "big", signed=True)
    now = int.from_bytes(made.onto(other).frame[4:8], "big", signed=True)
    assert (now - 1000 - off) % 2**32 == 0
    with pytest.raises(MutationError, match="does not fit"):
        made.onto(frame + b"\x00")


def test_bad_input_is_told():
    frame = good_frame(46, 0)
    with pytest.raises(DecodeError):
        mutation_of(frame[:-1], 46, 0, 1)
    with pytest.raises(UnsupportedVersionError):
        mutation_of(frame, 46, 99, 1)
    with pytest.raises(MutationError, match="unknown kinds of mutation: nonsense"):
        mutation_of(frame, 46, 0, 1, kinds=["nonsense"])
    document = mutation_of(frame, 46, 0, 1).to_dict()
    for broken in ("{", "[]", "{}", json.dumps({**document, "mutated": "00"}),
                   json.dumps({**document, "changes": [{}]})):  # fmt: skip
        with pytest.raises(MutationError):
            Mutation.from_json(broken)


def test_draws_are_what_they_were():
    """Figures seen on CPython 3.11; another Python has to give the same."""
    draws = Draws(20261122)
    assert [draws.below(100) for _ in range(8)] == EXPECTED_DRAWS
    frame = bytes.fromhex("0000000e0000000500000000000000000100")
    assert mutation_of(frame, 46, 0, 7).frame.hex() == EXPECTED_FRAME


EXPECTED_DRAWS = [97, 50, 62, 66, 3, 62, 80, 17]
EXPECTED_FRAME = "000000140000000501e80703744ccb000000000000000100"
