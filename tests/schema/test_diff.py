"""Evolution: which change breaks whom, shown on small schemas and on the drafts."""

import json
from typing import Any

import pytest

from kproto.schema.diff import Change, Comparison, diff_messages, diff_schemas
from kproto.schema.load import load_directory, parse_message, schemas_directory
from kproto.schema.model import MessageSchema

SCHEMAS = schemas_directory()


def field(name: str, kind: str = "int32", versions: str = "0+", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, **more}


def tagged(name: str, tag: int, kind: str = "int32", **more: Any) -> dict[str, Any]:
    return field(name, kind, **{"versions": "1+", "taggedVersions": "1+", "tag": tag, **more})


def message(*fields: dict[str, Any], versions: str = "0-2", **more: Any) -> MessageSchema:
    return parse_message(
        json.dumps(
            {
                "apiKey": 7, "type": "request", "name": "SmallRequest", "validVersions": versions,
                "flexibleVersions": "1+", **more, "fields": list(fields),
            }
        )
    )  # fmt: skip


def changes(old: MessageSchema, new: MessageSchema) -> set[tuple[str, str, str, str]]:
    found = diff_messages(old, new)
    assert all(item.why and item.what for item in found)
    return {(item.verdict, item.kind, item.versions, item.field) for item in found}


A, B, C = field("A"), field("B", "string"), field("C", "int64")
B_NULLABLE = field("B", "string", nullableVersions="0+")

SHARED = [
    # what happens, old fields, new fields, (verdict, kind, versions, field)
    ("same", [A, B], [A, B], set()),
    ("added", [A], [A, B], {("breaking", "field-added", "0-2", "B")}),
    ("removed", [A, B], [A], {("breaking", "field-removed", "0-2", "B")}),
    ("swapped", [A, B], [B, A], {("breaking", "field-moved", "0-2", "A")}),
    ("one moved", [A, B, C], [B, C, A], {("breaking", "field-moved", "0-2", "A")}),
    ("retyped", [A], [field("A", "int64")], {("breaking", "field-retyped", "0-2", "A")}),
    ("array", [A], [field("A", "[]int32")], {("breaking", "field-retyped", "0-2", "A")}),
    ("narrowed", [B_NULLABLE], [B], {("breaking", "nullable-narrowed", "0-2", "B")}),
    ("widened", [B], [B_NULLABLE], {("breaking", "nullable-widened", "0-2", "B")}),
    ("renamed", [A], [field("Z")], {("compatible", "renamed", "0-2", "Z")}),
    ("at one version", [A], [A, field("B", "int8", "1")],
     {("breaking", "field-added", "1", "B")}),
    ("range cut", [field("A"), B], [field("A"), field("B", "string", "1+")],
     {("breaking", "field-removed", "0", "B")}),
    ("tag added", [A], [A, tagged("T", 0)], {("compatible", "tagged-added", "1-2", "T")}),
    ("tag removed", [A, tagged("T", 0)], [A], {("compatible", "tagged-removed", "1-2", "T")}),
    ("tag reused", [tagged("T", 0)], [tagged("U", 0)], {("breaking", "tag-reused", "1-2", "U")}),
    ("tag retyped", [tagged("T", 0)], [tagged("T", 0, "int64")],
     {("breaking", "field-retyped", "1-2", "T")}),
    ("tag changed", [tagged("T", 0)], [tagged("T", 1)],
     {("breaking", "tag-changed", "1-2", "T")}),
    ("became tagged", [field("T", versions="1+")], [tagged("T", 0)],
     {("breaking", "field-tagged", "1-2", "T")}),
    ("was tagged", [tagged("T", 0)], [field("T", versions="1+")],
     {("breaking", "field-untagged", "1-2", "T")}),
    ("tagged range closed", [tagged("T", 0)], [tagged("T", 0, taggedVersions="1-2")],
     {("breaking", "tagged-versions-closed", "", "T")}),
    ("default everywhere", [A], [field("A", default="5")], {("compatible", "default", "", "A")}),
    ("default of a newer field", [field("A", versions="1+")],
     [field("A", versions="1+", default="5")], {("breaking", "default", "", "A")}),
    ("default of a tag", [tagged("T", 0)], [tagged("T", 0, default="5")],
     {("breaking", "default", "", "T")}),
    ("ignorable lost", [field("A", versions="1+", ignorable=True)], [field("A", versions="1+")],
     {("breaking", "ignorable", "0", "A")}),
    ("ignorable gained", [field("A", versions="1+")], [field("A", versions="1+", ignorable=True)],
     {("compatible", "ignorable", "", "A")}),
    ("length style", [B], [field("B", "string", flexibleVersions="none")],
     {("breaking", "compact", "1-2", "B")}),
    ("alias", [A], [field("Z", aliases=["A"])], {("compatible", "renamed", "0-2", "Z")}),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in SHARED],
                         ids=[row[0] for row in SHARED])  # fmt: skip
def test_at_shared_versions(old, new, expected):
    assert changes(message(*old), message(*new)) == expected


def test_inside_structs() -> None:
    old = message(field("S", "[]S", fields=[A, B]))
    new = message(field("S", "[]S", fields=[B, A]))
    assert changes(old, new) == {("breaking", "field-moved", "0-2", "S.A")}


STEPS = [
    ("added", [A], [A, field("B", "string", "3+")], {("compatible", "field-added", "2->3", "B")}),
    ("removed", [A, B], [A, field("B", "string", "0-2")],
     {("compatible", "field-removed", "2->3", "B")}),
    ("narrowed", [B_NULLABLE], [field("B", "string", nullableVersions="0-2")],
     {("breaking", "nullable-narrowed", "2->3", "B")}),
    ("widened", [B], [field("B", "string", nullableVersions="3+")],
     {("compatible", "nullable-widened", "2->3", "B")}),
    ("tag given to another", [tagged("T", 0)],
     [tagged("T", 0, versions="1-2", taggedVersions="1-2"),
      tagged("U", 1, versions="3+", taggedVersions="3+")],
     {("breaking", "tagged-versions-closed", "", "T"),
      ("compatible", "tagged-removed", "2->3", "T"),
      ("compatible", "tagged-added", "2->3", "U")}),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in STEPS],
                         ids=[row[0] for row in STEPS])  # fmt: skip
def test_from_the_last_version_to_a_new_one(old, new, expected):
    added = ("compatible", "versions-added", "3", "")
    assert changes(message(*old), message(*new, versions="0-3")) == expected | {added}


def test_dropped_versions() -> None:
    old = message(A, versions="0-3", deprecatedVersions="0")
    found = diff_messages(old, message(A, versions="1-4"))
    assert {(item.verdict, item.kind, item.versions) for item in found} == {
        ("breaking", "versions-dropped", "0"),
        ("compatible", "versions-added", "4"),
    }
    assert "deprecated" in found[0].why


def test_flexibility_of_a_version() -> None:
    expected = {("breaking", "flexible", "1", "")}
    assert changes(message(A), message(A, flexibleVersions="2+")) == expected


def test_an_unstable_version_may_change() -> None:
    old = message(A, latestVersionUnstable=True)
    assert changes(old, message(A, field("B", "int8", "2+"))) == {
        ("compatible", "field-added", "2", "B")
    }


def test_another_key_or_type() -> None:
    assert ("breaking", "api-key", "", "") in changes(message(A), message(A, apiKey=8))
    assert ("breaking", "type", "", "") in changes(message(A), message(A, type="response"))


# -- the drafts -------------------------------------------------------------------------------


def compare(old: str, new: str, *, partial: bool = False) -> Comparison:
    return diff_schemas(
        load_directory(SCHEMAS / old), load_directory(SCHEMAS / new), partial=partial
    )


def breaking(result: Comparison) -> set[tuple[str, str, str, str]]:
    return {
        (item.message, item.kind, item.versions, item.field)
        for item in result.changes
        if item.verdict == "breaking"
    }


@pytest.mark.requirement("A-01", "A-07")
def test_kip_455_old_against_new() -> None:
    """One rename and the null of PartitionIds (A-07) are all that changed on the wire."""
    result = compare("kip_455_old", "kip_455_new")
    assert len(result.pairs) == 6
    assert breaking(result) == {
        ("ListPartitionReassignmentsRequest", "nullable-widened", "0", "Topics.PartitionIds")
    }
    assert {(item.message, item.kind) for item in result.changes if item.verdict != "breaking"} == {
        ("AlterPartitionReassignmentsRequest", "renamed"),
        ("AlterPartitionReassignmentsResponse", "renamed"),
    }


def test_kip_455_against_what_shipped() -> None:
    found = breaking(compare("kip_455_new", "kafka", partial=True))
    alter, listing = "AlterPartitionReassignments", "ListPartitionReassignments"
    assert {
        (f"{alter}Request", "flexible", "0", ""),
        (f"{alter}Request", "nullable-narrowed", "0", "Topics"),
        (f"{alter}Request", "nullable-narrowed", "0", "Topics.Partitions"),
        (f"{alter}Response", "field-added", "0", "ErrorCode"),
        (f"{alter}Response", "field-added", "0", "Responses.Name"),
        (f"{listing}Request", "field-added", "0", "Topics.Name"),
        (f"{listing}Response", "field-added", "0", "Topics.Partitions.RemovingReplicas"),
    } <= found
    leader = {item for item in found if item[0] == "LeaderAndIsrRequest"}
    path = "TopicStates.PartitionStates"
    assert leader == {
        ("LeaderAndIsrRequest", "field-added", "3", f"{path}.RemovingReplicas"),
        ("LeaderAndIsrRequest", "nullable-narrowed", "3", f"{path}.AddingReplicas"),
    }
    assert not [item for item in found if item[0] == "LeaderAndIsrResponse"]


def test_drafts_that_shipped_as_they_were() -> None:
    """KIP-860 unchanged but for a listener; KIP-183's version 0 with other names."""
    shipped = compare("kip_860", "kafka", partial=True)
    assert [(item.verdict, item.kind) for item in shipped.changes] == [("compatible", "listeners")]
    assert breaking(compare("kip_183", "kafka", partial=True)) == set()


def test_a_draft_that_never_shipped() -> None:
    result = compare("kip_240", "kafka")
    assert result.pairs == []
    assert {item.kind for item in result.changes} == {"message-dropped"}
    assert not compare("kip_240", "kafka", partial=True).breaking


def test_nothing_changed() -> None:
    result = compare("kafka", "kafka")
    assert result.changes == []
    assert len(result.pairs) == len(load_directory(SCHEMAS / "kafka"))


def test_a_change_as_plain_data() -> None:
    change: Change = diff_messages(message(A), message(A, B))[0]
    assert change.as_dict()["kind"] == "field-added"
