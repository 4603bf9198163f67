"""The oracle itself: finds every kind of message, survives bad input, keeps order."""

import json
from collections.abc import Mapping

import pytest

from kproto.oracle.oracle import Op, Oracle, Question, Refusal, recoded

pytestmark = [pytest.mark.java, pytest.mark.oracle]


def test_every_kind_of_message_is_found(oracles: Mapping[str, Oracle]):
    for oracle in oracles.values():
        packages = {message.package for message in oracle.messages.values()}
        assert packages >= {
            "org.apache.kafka.common.message",
            "org.apache.kafka.common.metadata",
            "org.apache.kafka.coordinator.group.generated",
            "org.apache.kafka.coordinator.transaction.generated",
            "org.apache.kafka.raft.generated",
            "org.apache.kafka.server.log.remote.metadata.storage.generated",
        }
        assert {"RequestHeaderData", "FetchResponseData", "PartitionRecord"} <= set(oracle.messages)
    assert "LeaderAndIsrRequestData" in oracles["3.9.2"].messages
    assert "LeaderAndIsrRequestData" not in oracles["4.4.0"].messages
    assert oracles["4.4.0"].messages["AlterPartitionReassignmentsRequestData"].versions.highest == 1


def test_three_operations_on_one_value(oracles: Mapping[str, Oracle]):
    name = "ListPartitionReassignmentsRequestData"
    text = {"timeoutMs": 5, "topics": [{"name": "foo", "partitionIndexes": [1, 2]}]}
    expected = bytes.fromhex("000000050204666f6f0300000001000000020000")
    for oracle in oracles.values():
        encoded, again, shown = oracle.ask(
            [
                Question(Op.ENCODE, name, 0, json.dumps(text).encode()),
                Question(Op.RECODE, name, 0, expected),
                Question(Op.TO_JSON, name, 0, expected),
            ]
        )
        assert encoded == expected
        assert recoded(again) == (len(expected), expected)
        assert isinstance(shown, bytes)
        assert json.loads(shown) == text


def test_a_refusal_does_not_disturb_its_neighbours(oracles: Mapping[str, Oracle]):
    name = "ListPartitionReassignmentsRequestData"
    valid = bytes.fromhex("000000050000")
    questions = []
    for bad in (b"", b"\x00", valid[:-1], b"\xff" * 40):
        questions += [Question(Op.RECODE, name, 0, bad), Question(Op.RECODE, name, 0, valid)]
    questions.append(Question(Op.RECODE, name, 7, valid))
    questions.append(Question(Op.ENCODE, name, 0, b"{"))
    for oracle in oracles.values():
        batches = [oracle.submit(questions) for _ in range(3)]
        for batch in batches:
            answers = batch.result()
            for bad_answer, good_answer in zip(answers[0:8:2], answers[1:8:2], strict=True):
                assert isinstance(bad_answer, Refusal)
                assert recoded(good_answer) == (len(valid), valid)
            assert answers[8] == Refusal(f"IllegalArgumentException: {name} has versions 0 to 0")
            assert isinstance(answers[9], Refusal)
