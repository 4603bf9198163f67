"""Both implementations of open requests give the same, whatever is done with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.dialects import dialect
from wiredump import native
from wiredump.model import Connection, Exchange, Frame, Place
from wiredump.open_requests import OpenRequests, UnkeptBytes, open_requests
from wiredump.pairing import Pairing
from wiredump.spark import state

IDS = st.sampled_from([0, 1, 2, -1, 2**31 - 1, -(2**31)])
CALLS = st.one_of(
    st.tuples(st.just("push"), IDS, st.integers(0, 20)),
    st.tuples(st.sampled_from(["take", "oldest", "contains"]), IDS),
    st.tuples(st.just("take_oldest")),
)
AUTO = dialect("auto")
CONNECTION = Connection(0, "a:1", "b:9092", 0, from_start=True, place=Place(0, 0))


def request(number: int, correlation_id: int, size: int) -> Exchange:
    frame = Frame("request", number, size, bytes(size), 0, number, number + 1, Place(0, number))
    return Exchange(
        CONNECTION, request=frame, api_key=3, api_version=1, correlation_id=correlation_id,
        client_id=None if number % 2 else "c",
    )  # fmt: skip


def played(requests: OpenRequests, calls: list[tuple[Any, ...]]) -> list[Any]:
    found: list[Any] = []
    for number, (name, *arguments) in enumerate(calls):
        if name == "push":
            requests.push(request(number, *arguments))
        elif name == "contains":
            found.append(arguments[0] in requests)
        elif name == "take_oldest":
            found.append(requests.take_oldest() if len(requests) else None)
        else:
            found.append(getattr(requests, name)(*arguments))
        found.append((len(requests), requests.size, requests.pushed, set(requests)))
    return [*found, requests.all()]


@pytest.mark.usefixtures("extension")
@given(st.lists(CALLS, max_size=60))
def test_either_implementation(calls: list[tuple[Any, ...]]) -> None:
    with native.using(native.built()):
        fast = open_requests(CONNECTION, "kafka")
    with native.using(None):
        slow = open_requests(CONNECTION, "kafka")
    assert (type(slow) is OpenRequests, type(fast) is OpenRequests) == (True, False)
    assert played(fast, calls) == played(slow, calls)


@pytest.mark.usefixtures("extension")
def test_wrong_arguments_raise() -> None:
    with native.using(native.built()):
        requests = open_requests(CONNECTION, "kafka")
    for wrong in (None, Exchange(CONNECTION), object()):
        with pytest.raises(AttributeError):
            requests.push(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        requests.take("1")  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        requests.take_oldest()
    assert requests.take(2**40) is None
    assert len(requests) == 0


@pytest.mark.parametrize("module", [None, "built"])
def test_a_pairing_is_pickled_with_its_requests(
    module: str | None, request: pytest.FixtureRequest
) -> None:
    if module is not None:
        request.getfixturevalue("extension")
    with native.using(None if module is None else native.built()):
        pairing = Pairing(CONNECTION)
        pairing._open.push(_unkept(5))
        carried = state.load(state.dump(pairing, AUTO), AUTO)
    (found,) = carried._open.all()
    assert found.correlation_id == 5
    assert len(found.request.raw) == carried._open.size == 40


def _unkept(correlation_id: int) -> Exchange:
    unkept: Any = UnkeptBytes(40)
    frame = Frame("request", 0, 40, unkept, 0, 1, 2, Place(0, 0))
    return Exchange(CONNECTION, request=frame, correlation_id=correlation_id)
