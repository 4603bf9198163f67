"""Printing in C against decoding and ``to_json_value``: the same text, or none."""

from typing import Any

import pytest

from kproto.codec import registry
from kproto.codec.json_text import text_printer
from kproto.reference.random_trees import random_tree
from tests.native.burn import damage
from tests.native.printed_both import same_text
from tests.native.test_differential import RELEASED, Codecs
from tests.native.test_memory import LOOPS, least_growth
from tests.support import engines, seeds
from tests.support.full import quickly_drawn
from tests.support.instances import to_instance
from tests.support.schemas import of_dialect


@pytest.mark.parametrize(
    "folder", ["kafka", "kip_183", "kip_240", "kip_455_old", "kip_455_new", "kip_860"]
)
def test_every_message_and_version(folder: str) -> None:
    schemas = list(of_dialect(folder).values())
    printed = 0
    with engines.running("native"):
        for schema in quickly_drawn(f"json_text:{folder}", schemas, 12):
            for version in schema.valid_versions:
                codecs = Codecs(schema, version, folder)
                rng = seeds.generator(f"json_text:{folder}:{schema.name}:{version}")
                for size in (3, 40):
                    tree = random_tree(schema, version, rng, size=size)
                    data = codecs.native.encode(to_instance(codecs.cls, tree, schema))
                    printed += same_text(codecs.cls, version, b"\x00" + data + b"\x01", 1)
                    for _ in range(5):
                        same_text(codecs.cls, version, damage(data, rng))
    assert printed


@pytest.mark.slow
def test_random_messages() -> None:
    rng = seeds.generator("json_text")
    pairs = [(schema, version) for schema in RELEASED for version in schema.valid_versions]
    with engines.running("native"):
        for schema, version in rng.sample(pairs, 100):
            codecs = Codecs(schema, version)
            tree = random_tree(schema, version, rng, size=rng.choice((5, 40)))
            data = codecs.native.encode(to_instance(codecs.cls, tree, schema))
            same_text(codecs.cls, version, data)
            for _ in range(20):
                same_text(codecs.cls, version, damage(data, rng))


@pytest.mark.parametrize(
    "text",
    ["", "plain", '"\\/\x00\x1f\x7f\b\f\n\r\t', "\u00e9\u2028\U0001f600", "x" * 1000, "\\" * 5000],
)
def test_texts(text: str) -> None:
    from kproto.messages import FindCoordinatorRequest

    with engines.running("native"):
        assert same_text(FindCoordinatorRequest, 0, FindCoordinatorRequest(key=text).encode(0))


@pytest.mark.parametrize("number", [0, 1, -1, 9, 10, 99, -100, 2**63 - 1, -(2**63)])
def test_numbers(number: int) -> None:
    from kproto.messages import ListOffsetsResponse
    from kproto.messages.list_offsets_response import (
        ListOffsetsPartitionResponse,
        ListOffsetsTopicResponse,
    )

    partition = ListOffsetsPartitionResponse(timestamp=number, offset=-number // 2)
    topic = ListOffsetsTopicResponse(name="t", partitions=[partition])
    with engines.running("native"):
        assert same_text(ListOffsetsResponse, 1, ListOffsetsResponse(topics=[topic]).encode(1))


def test_more_codes_than_it_collects() -> None:
    from kproto.messages import DeleteTopicsResponse
    from kproto.messages.delete_topics_response import DeletableTopicResult

    with engines.running("native"):
        for count in (32, 33):
            results = [DeletableTopicResult(name="t", error_code=code + 1) for code in range(count)]
            data = DeleteTopicsResponse(responses=results).encode(0)
            assert same_text(DeleteTopicsResponse, 0, data) == (count == 32)


def test_without_the_engine_there_is_none() -> None:
    from kproto.messages import FindCoordinatorRequest

    with engines.running("pure"):
        assert text_printer(FindCoordinatorRequest, 0) is None


def test_wrong_arguments() -> None:
    from kproto.messages import FindCoordinatorRequest

    with engines.running("native"):
        printer: Any = text_printer(FindCoordinatorRequest, 0)
        plan: Any = registry.compiled_plan(FindCoordinatorRequest, 0)
        for wrong in ((), (b"",), (bytearray(4), 0)):
            with pytest.raises(TypeError):
                printer(*wrong)
        assert printer(b"\x00\x01a", -1) is None
        assert printer(b"\x00\x01a", 4) is None
        key = (0, b'"key":', b"", 0)
        for steps in ((), ((),), ((1,),), ((key, key),), ((key[:3],),), (((*key[:3], 1),),)):
            with pytest.raises((ValueError, TypeError)):
                plan.printer(steps, 9)
        assert plan.printer(((key,),), 9).print(b"\x00\x01a", 0) == ('{"key":"a"}', 3, (), None)


@pytest.mark.counts_memory
def test_nothing_leaks() -> None:
    with engines.running("native"):
        schema = next(each for each in RELEASED if each.name == "FetchResponse")
        codecs = Codecs(schema, 11)
        plan: Any = registry.compiled_plan(codecs.cls, 11)
        tree = random_tree(schema, 11, seeds.generator("json_text:leaks"), size=40)
        data = codecs.native.encode(to_instance(codecs.cls, tree, schema))

        def once() -> None:
            for sizes in (False, True):
                printer: Any = text_printer(codecs.cls, 11, sizes=sizes)
                assert printer(data, 0) is not None
                assert printer(data[:-1], 0) is None
            with pytest.raises(ValueError, match="one tuple"):
                plan.printer((), 9)

        assert least_growth(once) < LOOPS
