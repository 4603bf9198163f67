"""Errors go where each response carries them: every api key, every version, any request."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.dialects import DIALECTS, dialect
from mockbroker.apis import HANDLERS
from mockbroker.apis.common.error_places import Place, chosen_places, places_of
from mockbroker.apis.common.request_entities import Selection, named_by
from mockbroker.faults import Fault
from mockbroker.faults.partial_errors import refusal
from mockbroker.profiles import all_profiles
from tests.mockbroker.faults.faulty import KAFKA, Faulty
from tests.support.full import quick
from tests.support.instances import to_instance
from tests.support.strategies import message_trees

CODE = 87
ADVERTISED = sorted(
    {
        (key, version)
        for each in all_profiles()
        if each.dialect == "kafka"
        for key, versions in each.versions.items()
        for version in versions
    }
)
FORGETTING = {1, 78}
"""Fetches: they also list partitions that they will not ask for again."""
LEVELS = [None, "top", "topic", "partition", "element", "all"]


def codes_at(body: Any, place: Place) -> list[int]:
    """Every code that stands there."""
    holders = [body]
    for field in place.path:
        holders = [each for holder in holders for each in getattr(holder, field.python_name)]
    return [getattr(holder, place.code.python_name) for holder in holders]


def wants_answer(body: Message) -> bool:
    return not (body.API_KEY == 0 and body.acks == 0)


def check(body: Message, version: int, error_at: Any) -> Message | None:
    api = KAFKA.apis[body.API_KEY or 0]
    asked = Faulty(Fault(api=api.api_key, error=CODE, error_at=error_at, apply=False))
    answered = asked.answer(body, version)
    if not wants_answer(body):
        assert answered is None
        return None
    assert answered is not None
    chosen = chosen_places(api.response, version, error_at, Selection())
    assert chosen
    for place in places_of(api.response, version):
        codes = codes_at(answered, place)
        if place in chosen:
            assert codes, "the code is seen"
            assert set(codes) == {CODE}
        else:
            assert set(codes) <= {0}
    return answered


def test_every_advertised_version_carries_errors_somewhere():
    assert len(ADVERTISED) > 300
    for key, version in ADVERTISED:
        assert places_of(KAFKA.apis[key].response, version), (key, version)


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "kafka"])
def test_drafts_carry_errors_too(name):
    codec = dialect(name)
    drafted = [key for key in codec.apis if codec.apis[key] != KAFKA.apis.get(key)]
    assert drafted
    for key in drafted:
        api = codec.apis[key]
        for version in api.valid_versions:
            for error_at in LEVELS:
                fault = Fault(error=CODE, error_at=error_at)
                body = refusal(fault, api.request(), version, api.response, version, {})
                assert body is not None
                again = api.response.decode(body.encode(version), version)
                for place in chosen_places(api.response, version, error_at, Selection()):
                    assert set(codes_at(again, place)) == {CODE}


@pytest.mark.slow
@pytest.mark.parametrize("error_at", LEVELS)
def test_the_code_is_at_every_place_of_its_level_for_an_empty_request(error_at):
    for key, version in ADVERTISED:
        check(KAFKA.apis[key].request(), version, error_at)


@settings(max_examples=quick(80, 20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), pair=st.sampled_from(ADVERTISED), error_at=st.sampled_from(LEVELS))
def test_the_code_is_at_every_place_of_its_level_for_any_request(data, pair, error_at):
    key, version = pair
    cls = KAFKA.apis[key].request
    schema = schema_of(cls)
    body = to_instance(cls, data.draw(message_trees(schema, version)), schema)
    answered = check(body, version, error_at)
    if answered is None or error_at not in ("partition", "all"):
        return
    if not any(each.level == "partition" for each in places_of(KAFKA.apis[key].response, version)):
        return
    if key in FORGETTING:
        return
    asked, echoed = (named_by(each, version, {}) for each in (body, answered))
    if asked and all(each.topic and each.partition is not None for each in asked):
        assert {each.partition for each in asked} <= {each.partition for each in echoed}
        if key != 4:  # whose answer names topics by id, and the request by both
            assert {each for each in echoed if each.topic} <= set(asked)


IMPLEMENTED = sorted({pair for pair in ADVERTISED if pair[0] in HANDLERS})


@settings(max_examples=quick(80, 20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    pair=st.sampled_from(IMPLEMENTED),
    error_at=st.sampled_from(LEVELS),
    apply=st.sampled_from([None, True]),
    topic=st.sampled_from([None, "foo", "[a-z]*"]),
)
def test_the_code_is_seen_in_what_the_broker_answered(data, pair, error_at, apply, topic):
    """Requests that are carried out, wholly or in part: of topics that there are, or any."""
    key, version = pair
    cls = KAFKA.apis[key].request
    schema = schema_of(cls)
    body = to_instance(cls, data.draw(message_trees(schema, version)), schema)
    _name_topics(body, data)
    fault = Fault(api=key, error=CODE, error_at=error_at, apply=apply, topic=topic)
    asked = Faulty(fault)
    answered = asked.answer(body, version)
    (rule,) = asked.faults
    if answered is None or not rule.hits:
        return
    chosen = chosen_places(KAFKA.apis[key].response, version, error_at, rule.selection)
    assert CODE in [code for place in chosen for code in codes_at(answered, place)]


def _name_topics(value: Any, data: Any) -> None:
    """Let some of the topics be those that there are."""
    for name in value.__struct_fields__:
        held = getattr(value, name)
        if name in ("name", "topic", "topic_name", "resource_name") and held is not None:
            setattr(value, name, data.draw(st.sampled_from(["foo", "bar", "none"])))
        for each in held if isinstance(held, list) else [held]:
            if hasattr(each, "__struct_fields__"):
                _name_topics(each, data)
