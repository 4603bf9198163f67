"""The text of bodies, which is made in more than one way, is one text."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from kproto.codec.registry import schema_of
from kproto.messages import AlterClientQuotasRequest
from kproto.messages.alter_client_quotas_request import EntryData, OpData
from tests.wiredump.rows.tabled import KAFKA, exchange, tables_of
from wiredump import body_texts

ODD = '\x00\x1f"\\/\x7f\u2028\ud7ff\U0001f600é\n\t'
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.text(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(values)
def test_quick_text_is_that_of_the_standard_library(value) -> None:
    expected = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert body_texts._json(value) == (None if value is None else expected)


def test_what_is_no_unicode_is_kept() -> None:
    assert body_texts._json({"a": "\ud800"}) == '{"a":"\ud800"}'


def test_floats_are_written_as_ever() -> None:
    entry = EntryData(ops=[OpData(key="k", value=1e22), OpData(key="l", value=1e-7)])
    item = exchange(AlterClientQuotasRequest(entries=[entry]), None, 1, at=1)
    (body,) = tables_of([item])["bodies"]
    assert '"value":1e+22' in body["body"]
    assert '"value":1e-07' in body["body"]


def test_messages_with_floats_are_known() -> None:
    classes = [cls for api in KAFKA.apis.values() for cls in (api.request, api.response)]
    found = {cls.MESSAGE_NAME for cls in classes if "float64" in repr(schema_of(cls))}
    assert found == body_texts._WITH_FLOATS
