"""Where the builder of requests puts each field."""

import pytest

from kproto.messages import CreateTopicsRequest, ProduceRequest
from kproto.messages.create_topics_request import CreatableTopic, CreatableTopicConfig
from tests.support.requests import request_of


def test_fields_go_to_the_struct_that_has_them() -> None:
    config = {"name": "a", "value": "b"}
    made = request_of("CreateTopics", timeout_ms=5, topics={"name": "foo", "configs": [config]})
    topic = CreatableTopic(name="foo", configs=[CreatableTopicConfig(name="a", value="b")])
    assert made == CreateTopicsRequest(timeout_ms=5, topics=[topic])
    assert request_of(CreateTopicsRequest, topics=[topic], timeout_ms=5) == made
    (produced,) = request_of(ProduceRequest, name="foo", index=3, records=b"x").topic_data
    assert (produced.name, produced.partition_data[0].index) == ("foo", 3)


@pytest.mark.parametrize("field", ["none", "name"])
def test_a_name_without_a_single_place_is_refused(field: str) -> None:
    with pytest.raises(TypeError, match=f"no single place for {field}"):
        request_of("AddPartitionsToTxn", **{field: "foo"})
