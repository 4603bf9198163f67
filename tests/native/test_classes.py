"""Message classes that users derived, changed or broke: the same as with generated Python, or an
error, and never a crash."""

import contextlib
import gc
import inspect
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.workloads import WORKLOADS
from kproto.codec import interpreter, registry
from kproto.codec.classes import make_message_class
from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError, EncodeError, UnsupportedVersionError
from kproto.messages import HeartbeatRequest, HeartbeatResponse, MetadataResponse
from kproto.messages.metadata_response import MetadataResponseTopic
from kproto.schema.load import parse_message
from tests.codegen.test_hostile import nested_schema
from tests.support import engines

BODY = HeartbeatRequest(group_id="g", generation_id=3, member_id="m").encode(4)


def is_native(cls: type[Message], version: int) -> bool:
    return registry.compiled_plan(cls, version) is not None


def post_init() -> type[HeartbeatRequest]:
    class Loud(HeartbeatRequest):
        def __post_init__(self) -> None:
            self.group_id = self.group_id.upper()

    return Loud


def more_fields() -> type[HeartbeatRequest]:
    class More(HeartbeatRequest):
        seen_at: float = 1.5

    return More


def other_default() -> type[HeartbeatRequest]:
    class Other(HeartbeatRequest):
        group_instance_id: str | None = "static"

    return Other


def own_equality() -> type[HeartbeatRequest]:
    class Own(HeartbeatRequest):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, HeartbeatRequest)

        __hash__ = None  # type: ignore[assignment]

    return Own


def own_tags() -> type[HeartbeatRequest]:
    class Tags(HeartbeatRequest):
        unknown_tags: dict[int, bytes] = {}  # noqa: RUF012 - msgspec copies it

    return Tags


def shadowed() -> type[HeartbeatRequest]:
    class Shadowed(HeartbeatRequest):
        pass

    type.__setattr__(Shadowed, "group_id", property(lambda self: "shadow"))
    return Shadowed


def plain() -> type[HeartbeatRequest]:
    class Plain(HeartbeatRequest):
        def shout(self) -> str:
            return self.group_id.upper()

    return Plain


def frozen() -> type[HeartbeatRequest]:
    class Frozen(HeartbeatRequest, frozen=True):  # type: ignore[misc]
        pass

    return Frozen


def collected() -> type[HeartbeatRequest]:
    class Collected(HeartbeatRequest, gc=True, weakref=True):
        pass

    return Collected


def with_dict() -> type[HeartbeatRequest]:
    class WithDict(HeartbeatRequest, gc=True, dict=True):
        pass

    return WithDict


@pytest.mark.parametrize(
    ("make", "native"),
    [(post_init, False), (more_fields, False), (other_default, False), (own_equality, False),
     (own_tags, False), (shadowed, False), (with_dict, False),
     (plain, True), (frozen, True), (collected, True)],
)  # fmt: skip
def test_subclasses(make: Callable[[], type[HeartbeatRequest]], native: bool) -> None:
    with engines.running("pure"):
        cls = make()
        expected = [repr(cls.decode(body, version)) for body, version in bodies()]
    cls = make()
    for (body, version), text in zip(bodies(), expected, strict=True):
        decoded = cls.decode(body, version)
        assert type(decoded) is cls
        assert repr(decoded) == text
        if cls.__name__ not in ("Loud", "Shadowed", "Other", "Tags"):
            assert decoded.encode(version) == body
        with pytest.raises(DecodeError):
            cls.decode(body[:-1], version)
    assert is_native(cls, 4) is native


def bodies() -> list[tuple[bytes, int]]:
    tagged = HeartbeatRequest(group_id="g", unknown_tags={5: b"five"}).encode(4)
    return [(BODY, 4), (tagged, 4), (HeartbeatRequest(group_id="g").encode(0), 0)]


def test_a_collected_class_is_tracked() -> None:
    cls = collected()
    decoded = cls.decode(BODY, 4)
    assert is_native(cls, 4)
    assert gc.is_tracked(decoded)
    decoded.member_id = decoded  # type: ignore[assignment]
    del decoded
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is cls]


def test_classes_changed_after_first_use() -> None:
    cls = plain()
    first = cls.decode(BODY, 4)
    for name in ("group_id", "member_id"):
        type.__setattr__(cls, name, 5)
    assert cls.decode(BODY, 4).encode(4) == BODY
    for name in ("group_id", "member_id"):
        type.__delattr__(cls, name)
    assert cls.decode(BODY, 4) == first
    cls.STRUCTS = {"HeartbeatRequest": dict}  # type: ignore[assignment, dict-item]
    assert cls.decode(BODY, 4) == first


def test_objects_of_another_class() -> None:
    one, other = plain(), plain()
    value = one(group_id="g")
    value.encode(4)
    encode = one._ENCODERS[4]
    assert encode(other(group_id="h")) == other(group_id="h").encode(4)  # it has the fields
    for wrong in (5, None, MetadataResponse(), dict, one, object()):
        with pytest.raises(EncodeError):
            encode(wrong)
    topic = MetadataResponseTopic(name="t", partitions=[MetadataResponseTopic()])
    with pytest.raises(EncodeError) as caught:
        MetadataResponse(topics=[topic]).encode(9)
    assert caught.value.path == "topics[0].partitions[0]"


def test_members_that_were_deleted() -> None:
    for name in ("group_id", "generation_id", "_unknown_tags"):
        value = HeartbeatRequest.decode(BODY, 4)
        delattr(value, name)
        with pytest.raises((EncodeError, AttributeError)):
            value.encode(4)


def test_an_equality_that_changes_what_is_being_written() -> None:
    """Comparing with a default calls nobody from C: the interpreter does it, and holds on."""
    cls = make_message_class(
        parse_message(
            '{"type": "data", "name": "Sly", "validVersions": "0-1", "flexibleVersions": "0+",'
            ' "fields": [{"name": "Items", "type": "[]Item", "versions": "0+", "fields": ['
            ' {"name": "Note", "type": "string", "versions": "0+", "taggedVersions": "0+",'
            ' "tag": 0}, {"name": "Late", "type": "int32", "versions": "1+"}]}]}'
        )
    )
    item = cls.STRUCTS["Item"]
    message: Any = cls(items=[item(note="a"), item(note="b"), item(note="c")])

    class Sly(str):
        def __eq__(self, other: object) -> bool:
            message.items.clear()
            return False

        __hash__ = str.__hash__

    assert is_native(cls, 0)
    message.items[0].note = Sly("a")
    assert isinstance(message.encode(0), bytes)
    assert message.items == []


def test_a_schema_made_up_here() -> None:
    """Every construct at once, in a schema no release has: read and written in C."""
    fields = ", ".join(
        f'{{"name": "F{index}", "type": "{kind}", "versions": "0+"{extra}}}'
        for index, (kind, extra) in enumerate(
            [("bool", ""), ("int8", ""), ("int16", ""), ("uint16", ""), ("int32", ""),
             ("uint32", ""), ("int64", ""), ("float64", ""), ("uuid", ""), ("string", ""),
             ("bytes", ""), ("[]int8", ""), ("[]uuid", ""), ("[]bool", ""), ("[]bytes", ""),
             ("[]string", ', "nullableVersions": "0+"'),
             ("Pair", ', "fields": [{"name": "At", "type": "int64", "versions": "0+"}]'),
             ("float64", ', "taggedVersions": "1+", "tag": 2, "default": "0.5"'),
             ("[]int64", ', "taggedVersions": "1+", "tag": 4, "nullableVersions": "0+"'),
             ("Far", ', "taggedVersions": "1+", "tag": 7, "nullableVersions": "0+", '
              '"default": "null", "fields": [{"name": "To", "type": "uint32", "versions": "0+"}]')]
        )
    )  # fmt: skip
    schema = parse_message(
        '{"type": "data", "name": "Everything", "validVersions": "0-1", '
        f'"flexibleVersions": "1+", "fields": [{fields}]}}'
    )
    from kproto.reference.random_trees import random_tree
    from tests.native.test_differential import same_decoding
    from tests.support.instances import to_instance

    cls = make_message_class(schema)
    rng = random.Random(20)
    for version in (0, 1):
        pure = registry.generated_encoder(cls, version)

        class Codecs:
            native: Any = registry.compiled_plan(cls, version)
            pure_decode = staticmethod(registry.generated_decoder(cls, version))

        for _ in range(30):
            message = to_instance(cls, random_tree(schema, version, rng, size=60), schema)
            body = message.encode(version)
            assert body == pure(message)
            assert Codecs.native.takes(body) == (True, True)
            assert cls.decode(body, version) == message
            for _ in range(20):
                damaged = bytearray(body)
                damaged[rng.randrange(len(body))] = rng.randrange(256)
                same_decoding(Codecs, bytes(damaged))  # type: ignore[arg-type]


def test_nesting_is_bounded() -> None:
    """Schemas nest up to 32 deep, all of which C takes; a plan that goes on is refused."""
    from kproto.native import _engine, describe

    depth = 31
    cls = make_message_class(parse_message(nested_schema(depth)))
    value = cls.STRUCTS["Struct0"](leaf=7)
    for level in range(1, depth):
        value = cls.STRUCTS[f"Struct{level}"](**{f"level{level - 1}": [value]})
    message = cls(**{f"level{depth - 1}": [value]})
    assert is_native(cls, 0)
    assert cls.decode(message.encode(0), 0) == message

    rows = describe.describe(registry.plan_of(cls, 0), registry.structs_of(cls))
    kind, flexible, foreign, inline, *rest = rows[1]
    chain: list[Any] = [rows[0]]
    while len(chain) < 64:
        field = (*inline[0][:5], len(chain) - 1, *inline[0][6:])
        chain.append((kind, flexible, foreign, (field,), *rest))
    _engine.Plan(tuple(chain), len, len)
    field = (*inline[0][:5], len(chain) - 1, *inline[0][6:])
    chain += [(kind, flexible, foreign, (field,), *rest)] * 2
    chain[-1] = (kind, flexible, foreign, ((*field[:5], 64, *field[6:]),), *rest)
    with pytest.raises(ValueError, match="nested deeper"):
        _engine.Plan(tuple(chain), len, len)


def test_plans_that_were_tampered_with() -> None:
    """Whatever a description says, the engine refuses it or stays within the bytes and objects."""
    from kproto.native import _engine, describe

    rng = random.Random(4)
    wild: tuple[Any, ...] = (
        -1,
        0,
        1,
        2,
        3,
        7,
        8,
        9,
        12,
        13,
        15,
        64,
        255,
        2**31,
        2**63,
        10**30,
        None,
        "x",
        (),
        [],
        dict,
    )
    data = [each.body()[:600] for each in WORKLOADS]

    def give_up(*_args: object) -> Any:
        raise EncodeError("given up")

    taken = 0
    for key, cls, version in (("b", MetadataResponse, 12), ("e", HeartbeatRequest, 4)):
        message = next(each for each in WORKLOADS if each.key == key).message()
        rows = describe.describe(registry.plan_of(cls, version), registry.structs_of(cls))
        for _ in range(3000):
            broken: Any = _changed(rows, rng, wild)
            try:
                plan = _engine.Plan(broken, give_up, give_up)
            except (TypeError, ValueError, AttributeError, OverflowError):
                continue
            taken += 1
            calls: list[tuple[Any, Any]] = [(plan.decode, body) for body in data]
            for call, value in [*calls, (plan.encode, message)]:
                with contextlib.suppress(EncodeError):
                    call(value)
    assert taken > 20


def _changed(rows: Any, rng: random.Random, wild: tuple[Any, ...]) -> Any:
    """A nested tuple with one leaf, or one order, changed."""
    if type(rows) is not tuple or not rows:
        return rng.choice(wild)
    at = rng.randrange(len(rows))
    if rng.random() < 0.05:
        return rows[:at] + rows[at + 1 :]
    if rng.random() < 0.05:
        return (*rows[at:], *rows[:at])
    return (*rows[:at], _changed(rows[at], rng, wild), *rows[at + 1 :])


def test_threads_share_a_plan() -> None:
    messages = [each.message() for each in WORKLOADS if each.key in "abe"]
    versions = [each.version for each in WORKLOADS if each.key in "abe"]
    problems: list[object] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(40):
            at = rng.randrange(3)
            body = messages[at].encode(versions[at])
            if type(messages[at]).decode(body, versions[at]) != messages[at]:
                problems.append(at)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_the_methods_in_c_are_those_of_python() -> None:
    """Arguments by name or missing, buffers, other versions, what a subclass adds: all the same."""
    value: Any = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    bad: tuple[tuple[Any, ...], ...] = ((), (BODY,), (BODY, 4, True), (5, 4), (BODY, []))
    assert value.encode(version=4) == BODY
    assert HeartbeatRequest.decode(version=4, data=BODY) == value
    assert value.decode(bytearray(BODY), 4) == value
    assert HeartbeatRequest.decode(BODY + b"x", 4, allow_trailing=True) == value
    assert HeartbeatRequest.validate(memoryview(BODY), 4) is None
    assert HeartbeatRequest.validate(BODY + b"x", 4, allow_trailing=True) is None
    assert value.encode(True) == value.encode(1)  # type: ignore[arg-type]
    for call in (HeartbeatRequest.decode, HeartbeatRequest.validate):
        with pytest.raises(DecodeError) as caught:
            call(BODY + b"x", 4)
        assert caught.value.offset == len(BODY)
        for wrong in bad:
            with pytest.raises((TypeError, UnsupportedVersionError)):
                call(*wrong)
        with pytest.raises(UnsupportedVersionError):
            call(BODY, 99)
    bad = ((), (4, 5), ([],), ("4",))
    for wrong in bad:
        with pytest.raises((TypeError, UnsupportedVersionError)):
            value.encode(*wrong)
    with pytest.raises(TypeError):
        HeartbeatRequest.encode(5, 4)  # type: ignore[arg-type]

    class Counting(HeartbeatRequest):
        def encode(self, version: int) -> bytes:
            return super().encode(version) + b"!"

        @classmethod
        def decode(cls, data: Any, version: int, *, allow_trailing: bool = False) -> Any:
            return super().decode(data[:-1], version, allow_trailing=allow_trailing)

    assert Counting.decode(Counting(group_id="g").encode(4), 4) == Counting(group_id="g")
    assert inspect.signature(HeartbeatRequest.decode).parameters.keys() == {
        "data", "version", "allow_trailing"
    }  # fmt: skip


def test_numbers_of_an_enumeration_need_no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers set error codes, which are ints of a subclass."""
    plain = HeartbeatResponse(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS)).encode(4)

    def explain(*_: object) -> bytes:
        raise AssertionError("the interpreter is asked")

    monkeypatch.setattr(interpreter, "encode", explain)
    assert HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS).encode(4) == plain
