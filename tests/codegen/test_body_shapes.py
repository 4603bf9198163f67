"""Bodies of numbers and strings, unpacked at once where one of that size was met before."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.codec import interpreter, registry
from kproto.codegen import shapes
from kproto.errors import DecodeError
from kproto.messages import HeartbeatRequest, OffsetCommitRequest, SaslAuthenticateResponse

short = st.text(alphabet="ab\u00e9\u0000", max_size=4)
members = st.builds(
    lambda **fields: HeartbeatRequest(**fields),
    group_id=short,
    generation_id=st.integers(-(2**31), 2**31 - 1),
    member_id=short,
    group_instance_id=st.none() | short,
    unknown_tags=st.just({}) | st.just({}) | st.just({3: b"x"}),
)


def outcome(decode: Any, *arguments: Any) -> Any:
    try:
        return decode(*arguments)
    except DecodeError as error:
        return str(error), error.offset, error.path


@pytest.mark.parametrize("version", [3, 4])
@given(st.lists(members, min_size=1, max_size=12), st.data())
def test_any_order_of_shapes(version, messages, data):
    """Many share a size and differ in how it is divided; some are damaged."""
    decode = registry.generated_decoder(HeartbeatRequest, version)
    plan, structs = (
        registry.plan_of(HeartbeatRequest, version),
        registry.structs_of(HeartbeatRequest),
    )
    for message in messages:
        if version == 3:
            message.unknown_tags = {}
        body = interpreter.encode(plan.root, structs, message)
        assert decode(body) == message
        assert decode(body) == message
        assert decode(b"..." + body + b"..", 3) == (message, 3 + len(body))
        at = data.draw(st.integers(0, len(body) - 1))
        damaged = body[:at] + data.draw(st.binary(min_size=1, max_size=1)) + body[at + 1 :]
        for wrong in (damaged, body[:at], body + b"\0"):
            expected = outcome(interpreter.decode, plan.root, structs, wrong, 0)
            if isinstance(expected[0], HeartbeatRequest):
                trailing = f"bytes left over after the message: {len(wrong) - expected[1]}"
                error = DecodeError(trailing, offset=expected[1])
                whole = expected[1] == len(wrong)
                expected = expected[0] if whole else (str(error), error.offset, error.path)
            assert outcome(decode, wrong) == expected


def test_sizes_from_outside_are_bounded() -> None:
    decode = registry.generated_decoder(HeartbeatRequest, 4)
    bodies = decode.__globals__["bodies"]  # type: ignore[attr-defined]
    sizes = range(3 * shapes.MAX_SHAPES)
    for first, second in itertools.chain(zip(sizes, sizes, strict=True), [(400, 1), (1, 400)]):
        message = HeartbeatRequest(group_id="g" * first, member_id="m" * second)
        body = message.encode(4)
        assert decode(body) == message == decode(body)
    assert len(bodies) == shapes.MAX_SHAPES


def test_which_messages_have_them() -> None:
    for cls, version, expected in (
        (HeartbeatRequest, 0, True),
        (OffsetCommitRequest, 8, False),
        (SaslAuthenticateResponse, 1, False),  # holds bytes
    ):
        plan = registry.plan_of(cls, version).root
        assert shapes.has_body_shape(plan) is expected
        assert (
            "bodies" in registry.decoder_text(registry.plan_of(cls, version)).source
        ) is expected
