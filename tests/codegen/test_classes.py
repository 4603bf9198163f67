"""What a message object is: keyword-only, comparable, copyable, with tags of its own when asked."""

from __future__ import annotations

import copy
import pickle
import uuid

import msgspec
import pytest

import kproto.messages
from kproto.codec.classes import make_message_class
from kproto.codec.message import Message
from kproto.codec.structs import NO_TAGS, MessageStruct
from kproto.codegen import modules
from kproto.messages import HeartbeatRequest, MetadataRequest, MetadataResponse
from kproto.messages.metadata_response import MetadataResponseTopic
from kproto.schema.load import load_directory, parse_message, schemas_directory


def test_constructors_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        HeartbeatRequest("group")  # type: ignore[misc]
    with pytest.raises(TypeError):
        HeartbeatRequest(no_such_field=1)  # type: ignore[call-arg]


def test_unknown_tags_belong_to_one_object() -> None:
    first, second = HeartbeatRequest(), HeartbeatRequest()
    assert first._unknown_tags is NO_TAGS
    first.unknown_tags[5] = b"five"
    assert second.unknown_tags == {}
    assert NO_TAGS == {}
    assert first != second
    assert HeartbeatRequest.decode(first.encode(4), 4).unknown_tags == {5: b"five"}
    first.unknown_tags = {}
    assert first == second
    with pytest.raises(TypeError, match="shared"):
        NO_TAGS[1] = b""


def test_decoded_objects_can_be_given_tags() -> None:
    decoded = HeartbeatRequest.decode(HeartbeatRequest(group_id="g").encode(4), 4)
    decoded.unknown_tags[9] = b"nine"
    decoded.unknown_tags[3] = b"three"
    again = HeartbeatRequest.decode(decoded.encode(4), 4)
    assert list(again.unknown_tags) == [3, 9]


def test_objects_copy_pickle_and_replace() -> None:
    message = MetadataResponse(topics=[MetadataResponseTopic(name="t", unknown_tags={1: b"x"})])
    for twin in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert twin == message
        assert twin.encode(9) == message.encode(9)
        twin.unknown_tags[4] = b""
        assert message.unknown_tags == {}
    assert msgspec.structs.replace(message, controller_id=4).controller_id == 4


def test_defaults_are_fresh() -> None:
    MetadataResponse().topics.append(MetadataResponseTopic())
    assert MetadataResponse().topics == []
    assert MetadataRequest().topics == []


def test_repr_names_tags_only_when_there_are_some() -> None:
    assert "unknown_tags" not in repr(HeartbeatRequest())
    assert "unknown_tags={1: b'x'}" in repr(HeartbeatRequest(unknown_tags={1: b"x"}))


def test_run_time_classes_are_the_committed_ones() -> None:
    """A class made from a schema at run time has the fields and defaults its module would have."""
    count = 0
    for schema in load_directory(schemas_directory() / "kafka").values():
        committed: type[Message] = getattr(kproto.messages, schema.name)
        made = make_message_class(schema)
        pairs: list[tuple[type[MessageStruct], type[MessageStruct]]] = [(committed, made)]
        pairs += [(committed.STRUCTS[name], made.STRUCTS[name]) for name in made.STRUCTS]
        assert list(committed.STRUCTS) == list(made.STRUCTS)
        for left, right in pairs:
            assert left.__struct_fields__ == right.__struct_fields__
            assert msgspec.structs.asdict(left()).keys() == msgspec.structs.asdict(right()).keys()
            assert repr(left()) == repr(right())
            count += 1
        for name in ("MESSAGE_NAME", "MESSAGE_TYPE", "API_KEY", "VALID_VERSIONS"):
            assert getattr(committed, name) == getattr(made, name)
        assert committed.FLEXIBLE_VERSIONS == made.FLEXIBLE_VERSIONS
    assert count > 600


def test_a_schema_cannot_break_out_of_its_docstring() -> None:
    text = (
        '{"type": "data", "name": "Sly", "validVersions": "0", "flexibleVersions": "none",'
        r' "about": "ends\\ in \"\"\"", "fields": []}'
    )
    files = modules.generated_files([parse_message(text)])
    compile(files["sly.py"], "sly.py", "exec")


def test_zero_uuid_is_a_value() -> None:
    body = MetadataResponse(topics=[MetadataResponseTopic(name="t")]).encode(12)
    assert MetadataResponse.decode(body, 12).topics[0].topic_id == uuid.UUID(int=0)
