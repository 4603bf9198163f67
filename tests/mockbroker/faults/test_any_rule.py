"""Any rule that is taken at all, on any request: the broker lives on, and knows what it did."""

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import kproto.errors
from kproto.codec.registry import schema_of
from mockbroker.errors import FaultError
from mockbroker.faults import Fault
from mockbroker.faults.delivery import Hold, Plan, Write
from mockbroker.serving.exchange import Close
from mockbroker.serving.redaction import REDACTED_RESPONSES
from tests.mockbroker.faults.faulty import KAFKA, Faulty
from tests.support.full import quick
from tests.support.instances import to_instance
from tests.support.strategies import message_trees

PAIRS = [(key, version) for key, api in KAFKA.apis.items() for version in api.valid_versions]
PATHS = st.sampled_from(
    ["error_code", "topics", "topics[*].name", "responses[0].partitions", "throttle_time_ms", "x"]
)
HEX = st.sampled_from(["", "00", "cafebabe"])
NUMBERS = st.sampled_from([-1, 0, 1, 7, 2**31 - 1])
WHAT: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["foo", "*"]),
    "partition": st.integers(0, 2),
    "apply": st.booleans(),
    "steps_before": st.just(("failover 2",)),
    "steps_after": st.just(("leave-isr foo-0 9",)),
    "reply": st.sampled_from([{}, {"errorCode": 3}, {"topics": []}, {"x": 1}]),
    "error": st.sampled_from([0, 3, 41, -1]),
    "error_message": st.just("why"),
    "error_at": st.sampled_from(["top", "topic", "partition", "element", "all"]),
    "throttle": st.just(5),
    "as_version": st.integers(0, 20),
    "unknown_tags": st.sampled_from([("header",), ("body", "elements")]),
    "set": st.dictionaries(
        PATHS, st.none() | NUMBERS | st.just("eA==") | st.just([1]) | st.just({}), max_size=2
    ),
    "set_length": st.dictionaries(PATHS, NUMBERS, max_size=2),
    "set_bytes": st.dictionaries(PATHS, HEX, max_size=2),
    "more": st.dictionaries(PATHS, st.integers(1, 3), max_size=2),
    "replace_bytes": st.dictionaries(
        st.sampled_from(["4+4", "8+0", "9+1", "900+4"]), HEX, max_size=3
    ),
    "correlation_id": NUMBERS,
    "correlation_off_by": NUMBERS,
    "trailing": HEX,
    "length": NUMBERS,
    "length_off_by": NUMBERS,
    "truncate": st.integers(-30, 30),
    "raw": HEX,
    "garbage": st.integers(1, 50),
    "tls_alert": st.integers(0, 255),
    "follow_with": HEX,
    "unsolicited": st.sampled_from(["before", "after"]),
    "unsolicited_correlation_id": NUMBERS | st.just("own"),
    "never_answer": st.booleans(),
    "hold_responses": st.integers(1, 3),
    "hold_for": st.integers(0, 3),
    "swap": st.sampled_from(["order", "ids"]),
    "split": st.integers(1, 50),
    "split_delay": st.integers(0, 3),
    "disconnect": st.sampled_from(["before", "after", "answered"]),
    "close_with": st.sampled_from(["fin", "half-close", "reset"]),
}


@st.composite
def rules(draw: st.DrawFn) -> Fault:
    names = draw(st.lists(st.sampled_from(sorted(WHAT)), min_size=1, max_size=5, unique=True))
    try:
        return Fault(name="any", **{name: draw(WHAT[name]) for name in names})
    except FaultError:
        assume(False)
        raise


@settings(max_examples=quick(100, 25), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), fault=rules(), pair=st.sampled_from(PAIRS))
def test_the_broker_lives_on_and_tells(data, fault, pair):
    key, version = pair
    cls = KAFKA.apis[key].request
    schema = schema_of(cls)
    body = to_instance(cls, data.draw(message_trees(schema, version)), schema)
    asked = Faulty(fault)
    plan = asked.plan(body, version)
    (rule,) = asked.faults
    if not rule.hits:
        return
    events = asked.journal.select(event="fault: any", direction="event")
    assert len(events) == 1
    note = events[0].note
    if note.startswith("failed"):
        error = note.split(": ")[1]
        assert issubclass(getattr(kproto.errors, error), kproto.errors.KprotoError), note
        assert isinstance(plan, Close)
        return
    assert isinstance(plan, Plan | Close)
    if isinstance(plan, Plan):
        told = asked.journal.select(event="fault: any", direction="response")
        writes = b"".join(step.data for step in plan.steps if isinstance(step, Write))
        if key in REDACTED_RESPONSES:
            # A damaged frame may hold a secret anywhere: the journal keeps none of it.
            assert all(len(each.raw) in (0, len(writes)) for each in told)
        else:
            assert b"".join(each.raw for each in told) == writes
        held = any(isinstance(step, Hold) for step in plan.steps)
        assert plan.answers is (held or bool(writes))
