"""What a message object is: keyword-only, comparable, copyable, with tags of its own when asked."""

import builtins
import copy
import json
import keyword
import pickle
import uuid

import msgspec
import pytest

import kproto.messages
from kproto.codec.classes import make_message_class
from kproto.codec.message import Message
from kproto.codec.structs import NO_TAGS, MessageStruct
from kproto.codegen import modules
from kproto.codegen.names import TAKEN
from kproto.errors import DecodeError, EncodeError
from kproto.messages import HeartbeatRequest, MetadataRequest, MetadataResponse
from kproto.messages.metadata_response import MetadataResponseTopic
from kproto.schema.load import parse_message
from tests.support.schemas import released


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
    assert list(HeartbeatRequest.decode(decoded.encode(4), 4).unknown_tags) == [3, 9]


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
    for schema in released().values():
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


def test_no_field_of_a_draft_hides_what_a_message_has() -> None:
    """Nor does a struct hide a name that generated code uses."""
    inherited = [
        name
        for name in dir(HeartbeatRequest)
        if not name.startswith("_") and name not in HeartbeatRequest.__struct_fields__
    ]
    methods = [name for name in inherited if not name.isupper()]
    words = ["".join(map(str.capitalize, name.split("_"))) for name in methods]
    fields = [{"name": word, "type": "string", "versions": "0+"} for word in words]
    shadowing = {
        name
        for name in {*dir(builtins), *TAKEN}
        if name[0].isupper() and name.isalnum() and not keyword.iskeyword(name)
    }
    structs = [
        {"name": f"F{number}", "type": f"[]{name}", "versions": "0+",
         "fields": [{"name": "A", "type": "string", "versions": "0+"}]}
        for number, name in enumerate(sorted(shadowing))
    ]  # fmt: skip
    schema = {
        "type": "data", "name": "Draft", "validVersions": "0", "flexibleVersions": "none",
        "fields": fields + structs,
    }  # fmt: skip
    cls = make_message_class(parse_message(json.dumps(schema)))
    taken = cls.__struct_fields__
    assert not {*methods} & {*taken}
    message = cls(**{f"{name}_": name for name in methods})
    assert cls.decode(message.encode(0), 0) == message
    assert cls.from_json(message.to_json(0), 0) == message
    assert cls.validate(message.encode(0), 0) is None
    with pytest.raises(DecodeError, match="byte"):
        cls.decode(message.encode(0)[:-1], 0)
    with pytest.raises(EncodeError):
        cls(**{f"{methods[0]}_": 5}).encode(0)
