"""Any request at all: of one who may nothing, and of one who may everything."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.codec.registry import schema_of
from kproto.messages import ProduceRequest
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulation.security.enforced import (
    ADMIN,
    ENFORCED,
    EVERYTHING,
    KAFKA,
    SERVED,
    as_alice,
    new_cluster,
)
from tests.support.instances import to_instance
from tests.support.strategies import message_trees


def anything(data: st.DataObject) -> tuple[Any, int]:
    key, version = data.draw(st.sampled_from(SERVED))
    request = KAFKA.apis[key].request
    schema = schema_of(request)
    body: Any = to_instance(request, data.draw(message_trees(schema, version)), schema)
    return body, version


@pytest.mark.slow
@given(data=st.data())
def test_who_may_nothing_changes_nothing(data: st.DataObject) -> None:
    cluster = new_cluster()
    before = len(cluster.log)
    asked = as_alice(cluster)
    for _ in range(4):
        body, version = anything(data)
        answer = asked.ask(body, version, broker_id=data.draw(st.integers(1, 4)))
        if answer is None and not (isinstance(body, ProduceRequest) and body.acks == 0):
            note = asked.journal.select(event="malformed")[-1].note
            assert "UNKNOWN(0)" in note or isinstance(body, ProduceRequest)
    assert len(cluster.log) == before
    assert [entry.note for entry in asked.journal.select(event="failed")] == []


@given(data=st.data())
def test_a_super_user_is_answered_as_if_nothing_was_enforced(data: st.DataObject) -> None:
    boss = DirectBroker(new_cluster(), apis=EVERYTHING, security=ENFORCED, principal=ADMIN)
    anybody = DirectBroker(new_cluster(), apis=EVERYTHING, principal=ADMIN)
    for _ in range(4):
        body, version = anything(data)
        broker_id = data.draw(st.integers(1, 4))
        answers = [each.ask(body, version, broker_id=broker_id) for each in (boss, anybody)]
        assert answers[0] == answers[1]
    assert boss.cluster.describe() == anybody.cluster.describe()
