"""Every api key, at every version it is implemented at, over any request that can be written."""

import importlib
import pkgutil
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.codec.registry import schema_of
from kproto.dialects import dialect
from kproto.schema.versions import Versions
from mockbroker.apis import HANDLERS, handlers
from mockbroker.apis.common.refusals import error_response
from mockbroker.apis.registry import register
from mockbroker.profiles import all_profiles
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.support.instances import to_instance
from tests.support.strategies import message_trees

KAFKA = dialect("kafka")
SERVED = [(key, version) for key, handler in HANDLERS.items() for version in handler.versions]
EVERYTHING: dict[int, Versions | None] = {key: h.versions for key, h in HANDLERS.items()}
ALL_RESPONSES = [
    (api.api_key, version) for api in KAFKA.apis.values() for version in api.valid_versions
]
REQUIRED = {18, 3, 60, 75, 32, 44, 19, 20, 37, 35, 43, 45, 46, 61, 29, 30, 31, 10}


def test_the_required_apis_have_handlers() -> None:
    assert set(HANDLERS) >= REQUIRED


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_a_handler_knows_every_version_any_release_advertises(key: int) -> None:
    for each in all_profiles():
        if key in each.versions:
            assert HANDLERS[key].versions.covers(each.versions[key]), each.name


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_a_handler_claims_no_version_the_codec_lacks(key: int) -> None:
    assert KAFKA.apis[key].valid_versions.covers(HANDLERS[key].versions)


def test_a_key_has_one_handler() -> None:
    with pytest.raises(ValueError, match="45 has a handler"):
        register(45, "0")(lambda call: call.body)


def test_each_module_says_its_key_on_its_first_line() -> None:
    """One file an api key, and a reader finds it by name or number."""
    registered = set()
    for module in pkgutil.iter_modules(handlers.__path__):
        text = importlib.import_module(f"{handlers.__name__}.{module.name}").__doc__ or ""
        keys = {int(found) for found in re.findall(r"\((\d+)[,)]", text.strip().splitlines()[0])}
        registered |= keys
    assert registered == set(HANDLERS)


@pytest.mark.parametrize(("key", "version"), SERVED)
def test_an_empty_request_is_answered(key: int, version: int) -> None:
    asked = DirectBroker(Cluster(topics=["foo=1,2,3"]), apis=EVERYTHING)
    answer = asked.ask(KAFKA.apis[key].request(), version)
    # A filter of access rules that says nothing says UNKNOWN, which Kafka does not read.
    # Without acks, a producer wants no answer.
    assert (answer is None) == (key in (0, 29))
    assert not asked.journal.select(event="failed")
    assert not asked.journal.select(event="unimplemented")


@given(data=st.data())
def test_any_request_is_answered(data: st.DataObject) -> None:
    """No request that can be decoded makes a handler fail, or an answer that cannot be encoded."""
    cluster = Cluster(4, topics=["foo=1,2,3/2,3,4"])
    asked = DirectBroker(cluster, apis=EVERYTHING)
    for _ in range(4):
        key, version = data.draw(st.sampled_from(SERVED))
        request = KAFKA.apis[key].request
        schema = schema_of(request)
        tree = data.draw(message_trees(schema, version))
        broker_id = data.draw(st.integers(1, 4))
        body: Any = to_instance(request, tree, schema)
        answer = asked.ask(body, version, broker_id=broker_id)
        unwanted = key == 0 and body.acks == 0
        assert answer is not None or unwanted or asked.journal.select(event="malformed", api=key)
    failures = [entry.note for entry in asked.journal.select(event="failed")]
    assert failures == []


@pytest.mark.parametrize(("key", "version"), ALL_RESPONSES)
def test_an_error_finds_its_place_in_every_response(key: int, version: int) -> None:
    response = KAFKA.apis[key].response
    body = error_response(response, version, 35)
    schema = schema_of(response)
    if body is None:
        # Only where the version has no error code at all: nothing could carry it.
        assert not _has_error_code(schema.root, version), (schema.name, version)
        return
    again: Any = response.decode(body.encode(version), version)
    assert _error_codes(again) == [35]
    if any(f.name == "ErrorCode" and version in f.versions for f in schema.root.fields):
        assert again.error_code == 35


def _has_error_code(struct: Any, version: int) -> bool:
    return any(
        version in field.versions
        and (
            field.name == "ErrorCode"
            or (field.type.inner_struct and _has_error_code(field.type.inner_struct, version))
        )
        for field in struct.fields
    )


def _error_codes(value: Any) -> list[int]:
    """Every error code in a message that is not 0."""
    if isinstance(value, list):
        return [code for item in value for code in _error_codes(item)]
    if not hasattr(value, "__struct_fields__"):
        return []
    found = [getattr(value, "error_code", 0)]
    for name in value.__struct_fields__:
        if name != "unknown_tags":
            found += _error_codes(getattr(value, name))
    return [code for code in found if code]
