"""What the engine remembers of a class between one call and the next: only what still holds."""

import gc
import random
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from kproto.codec import registry
from kproto.codec.message import Message
from kproto.errors import DecodeError, UnsupportedVersionError
from kproto.messages import HeartbeatRequest
from tests.support import engines

VALUE = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
BODIES = {version: VALUE.encode(version) for version in (0, 3, 4)}
DICTS = ("_DECODERS", "_ENCODERS", "_VALIDATORS")


def draft(base: type[HeartbeatRequest] = HeartbeatRequest) -> Any:
    class Draft(base):  # type: ignore[valid-type, misc]
        pass

    return Draft


def used(cls: Any) -> Any:
    """The class after its usual calls, so that everything about it is known."""
    for version, body in BODIES.items():
        for _ in range(2):
            assert type(cls.decode(body, version)) is cls
            assert cls.decode(body, version).encode(version) == body
            assert cls.validate(body, version) is None
    return cls


def kept(cls: Any, name: str) -> Any:
    """What an attribute is by Python's own rule."""
    return next(vars(each)[name] for each in cls.__mro__ if name in vars(each))


def plans(version: int) -> list[Any]:
    """Plans of several classes: what they decode tells which of them ran."""
    return [registry.compiled_plan(used(draft()), version) for _ in range(4)]


def test_any_order_of_changes() -> None:
    """Dicts emptied, filled and replaced, in a class and in the one it inherits from: each call
    runs the codec that Python would find."""
    rng = random.Random(8)
    parent = used(draft())
    cls = used(draft(parent))
    by_version = {version: plans(version) for version in BODIES}
    markers: list[Callable[..., Any]] = [lambda *_: b"one", lambda *_: b"two"]

    def change() -> None:
        owner = rng.choice((cls, cls, parent))
        at = rng.randrange(3)
        name, version = DICTS[at], rng.choice(list(BODIES))
        plan = rng.choice(by_version[version])
        made = (plan.decode, plan.encode, plan.validate)[at]
        if at == 1:
            made = rng.choice(markers)  # a plan of another class would ask Python
        kind = rng.randrange(6)
        if kind == 0:
            type.__setattr__(owner, name, {version: made})
        elif kind == 1 and owner is cls and name in vars(cls):
            type.__delattr__(cls, name)
        elif kind == 2:
            kept(owner, name).pop(version, None)
        elif kind == 3:
            kept(owner, name).clear()
        else:
            kept(owner, name)[version] = made

    value = cls.decode(BODIES[4], 4)
    for _ in range(3000):
        change()
        for _ in range(rng.randrange(1, 3)):
            version = rng.choice(list(BODIES))
            made = kept(cls, "_DECODERS").get(version)
            expected = type(made(BODIES[version], 0)[0]) if made else cls
            assert type(cls.decode(BODIES[version], version)) is expected
            made = kept(cls, "_ENCODERS").get(version)
            assert value.encode(version) == (made(value) if made else BODIES[version])
            cls.validate(BODIES[version], version)
            with pytest.raises(DecodeError):
                cls.validate(BODIES[version][:-1], version)


class Own(dict[int, Any]):
    """A dict that says something else than it holds."""

    def __getitem__(self, version: int) -> Any:
        return lambda data: HeartbeatRequest.decode(data, version)


def test_a_dict_of_another_kind() -> None:
    """C does not look into it, and asks Python, which reads whole bodies by ``_READERS``."""
    cls = used(draft())
    type.__setattr__(cls, "_DECODERS", Own(cls._DECODERS))
    type.__setattr__(cls, "_READERS", Own())
    for _ in range(2):
        assert type(cls.decode(BODIES[4], 4)) is HeartbeatRequest


def test_classes_that_go_and_come() -> None:
    """Each is freed, bound methods and all, and what stands where it stood is another class."""
    gc.freeze()  # The collections pass over what there was before, and take no longer for it.
    try:
        for _ in range(20):
            cls = used(draft())
            gone, bound = weakref.ref(cls), weakref.ref(cls.decode)
            registry._plans.clear()
            registry._compiled.clear()
            del cls
            gc.collect()
            assert gone() is None
            assert bound() is None
    finally:
        gc.unfreeze()


def test_the_codec_that_is_switched() -> None:
    cls = used(draft())
    for engine in ("pure", "native", "pure"):
        with engines.running(engine):
            used(cls)
            assert (registry.compiled_plan(cls, 4) is None) is (engine == "pure")
            for name in DICTS:
                in_c = isinstance(kept(cls, name)[4], types.BuiltinMethodType)
                assert in_c is (engine == "native")
    used(cls)


def test_numbers_that_are_made_anew() -> None:
    """A version above 256 is another object each time, at an address that others had."""
    cls = used(draft())
    marker = [bytes([each]) for each in range(100)]
    for each in range(100):
        cls._ENCODERS[1000 + each] = lambda _, each=each: marker[each]
    value = cls.decode(BODIES[4], 4)
    for each in range(100):
        assert value.encode(int(f"1{each:03}")) == marker[each]
    with pytest.raises(UnsupportedVersionError):
        value.encode(int("2000"))


def test_methods_replaced_on_a_base(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound methods kept with a class do not hide what a base of it gets."""
    cls = used(draft())
    with monkeypatch.context() as patch:
        patch.setattr(Message, "decode", classmethod(lambda cls, data, version: (cls, version)))
        patch.setattr(Message, "validate", staticmethod(lambda data, version: data))
        patch.setattr(Message, "encode", lambda self, version: b"patched")
        assert cls.decode(b"", 4) == (cls, 4)
        assert cls.validate(b"x", 4) == b"x"
        assert cls().encode(4) == b"patched"
        patch.setattr(HeartbeatRequest, "decode", classmethod(lambda cls, *_: "nearer"), False)
        assert cls.decode(b"", 4) == "nearer"
    used(cls)


def test_bound_methods() -> None:
    parent = used(draft())
    cls = used(draft(parent))
    assert cls.decode.__self__ is cls
    assert parent.decode.__self__ is parent
    assert cls().validate.__self__ is cls
    assert cls.decode.__name__ == "decode"
    descriptor = vars(Message)["decode"]
    assert descriptor.__get__(None, cls)(BODIES[4], 4) == cls.decode(BODIES[4], 4)
    for wrong in (int, 5):
        with pytest.raises(TypeError):
            descriptor.__get__(None, wrong)
    for junk in (5, (), (1, 2), (parent.decode, parent.validate), (cls.validate, cls.decode)):
        type.__setattr__(cls, "_BOUND", junk)
        used(cls)
        assert cls.decode.__self__ is cls


def test_encode_of_other_objects() -> None:
    class Like:
        _ENCODERS = HeartbeatRequest._ENCODERS

    for wrong in (5, None, Like(), HeartbeatRequest):
        with pytest.raises(TypeError):
            HeartbeatRequest.encode(wrong, 4)  # type: ignore[arg-type]
