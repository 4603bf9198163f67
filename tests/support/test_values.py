"""The generators keep what they promise: valid, mostly filled, repeatable, covering."""

import random
from typing import Any

import msgspec
import pytest

from kproto import reference
from kproto.reference.random_trees import random_tree
from kproto.schema.load import parse_message
from tests.support.instances import to_instance, to_tree
from tests.support.roundtrip import cuts
from tests.support.values import FieldCoverage

SCHEMA = parse_message("""
{ "apiKey": 900, "type": "request", "name": "SampleRequest",
  "validVersions": "0-2", "flexibleVersions": "1+", "fields": [
  { "name": "Id", "type": "int32", "versions": "0+", "default": "-1" },
  { "name": "Old", "type": "int8", "versions": "0", "ignorable": true },
  { "name": "Items", "type": "[]Item", "versions": "0+", "nullableVersions": "1+", "fields": [
    { "name": "Name", "type": "string", "versions": "0+" },
    { "name": "Records", "type": "records", "versions": "0+", "nullableVersions": "2+" },
    { "name": "Replicas", "type": "[]int32", "versions": "0+" } ] },
  { "name": "Ratio", "type": "float64", "versions": "1+", "taggedVersions": "1+", "tag": 1 } ] }
""")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_trees_are_valid_and_mostly_filled(version: int, rng: random.Random) -> None:
    coverage = FieldCoverage()
    for _ in range(50):
        one = FieldCoverage()
        tree = random_tree(SCHEMA, version, rng)
        one.add(SCHEMA, version, tree)
        coverage.add(SCHEMA, version, tree)
        assert one.filled_share >= 0.5
        assert reference.decode(SCHEMA, version, reference.encode(SCHEMA, version, tree)) == tree
    assert coverage.missing == []
    assert "100.00%" in str(coverage)


def test_coverage_names_what_was_never_filled() -> None:
    coverage = FieldCoverage()
    tree = {"id": -1, "old": 0, "items": [], "ratio": 0.0, "unknown_tags": {}}
    coverage.add(SCHEMA, 1, tree)
    coverage.add(SCHEMA, 1, {**tree, "id": 3})
    assert coverage.missing == [
        ("SampleRequest", 1, "items"),
        ("SampleRequest", 1, "items.name"),
        ("SampleRequest", 1, "items.records"),
        ("SampleRequest", 1, "items.replicas"),
        ("SampleRequest", 1, "ratio"),
    ]


def test_the_same_seed_makes_the_same_trees() -> None:
    first, second = (random_tree(SCHEMA, 2, random.Random(5)) for _ in range(2))
    assert first == second


def test_a_stray_ignorable_field_is_dropped_on_the_wire(rng: random.Random) -> None:
    trees = [random_tree(SCHEMA, 1, rng, stray_ignorable=True) for _ in range(20)]
    assert any(tree["old"] != 0 for tree in trees)
    for tree in trees:
        assert reference.decode(SCHEMA, 1, reference.encode(SCHEMA, 1, tree)) == {**tree, "old": 0}


def test_long_counts_and_every_kind_of_tag_turn_up(rng: random.Random) -> None:
    trees = [random_tree(SCHEMA, 2, rng) for _ in range(300)]
    items = [item for tree in trees for item in tree["items"] or ()]
    assert any(len(item["replicas"]) > 127 for item in items)
    assert any(len(item["name"].encode()) > 127 for item in items)
    assert any(item["records"] is None for item in items)
    assert {0, 2} <= {tag for tree in trees for tag in tree["unknown_tags"]}
    assert not any(1 in tree["unknown_tags"] for tree in trees)


class Item(msgspec.Struct, kw_only=True):
    name: str = ""
    records: bytes | None = None
    replicas: list[int] = []
    unknown_tags: dict[int, bytes] = {}


class SampleRequest(msgspec.Struct, kw_only=True):
    STRUCTS = {"Item": Item}

    id: int = -1
    old: int = 0
    items: list[Item] | None = []
    ratio: float = 0.0
    unknown_tags: dict[int, bytes] = {}


def test_trees_and_instances_convert_both_ways(rng: random.Random) -> None:
    for _ in range(20):
        tree: dict[str, Any] = random_tree(SCHEMA, 2, rng)
        instance = to_instance(SampleRequest, tree, SCHEMA)
        assert isinstance(instance, SampleRequest)
        assert all(isinstance(item, Item) for item in instance.items or ())
        assert to_tree(instance) == tree


def test_cuts_are_proper_prefixes_with_both_ends() -> None:
    assert cuts(0, 5) == []
    assert cuts(3, 5) == [0, 1, 2]
    spread = cuts(1000, 5)
    assert (spread[0], spread[-1], len(spread)) == (0, 999, 5)
