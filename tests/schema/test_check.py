"""The lint: silent on what Kafka's generator takes, and a finding for everything it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from kproto.dialects import load_dialect
from kproto.errors import SchemaError
from kproto.schema.check import Finding, check_directory, check_text
from kproto.schema.load import schemas_directory


def message(*fields: dict[str, Any], **properties: Any) -> str:
    document = {
        "apiKey": 7, "type": "request", "name": "SmallRequest", "validVersions": "0-3",
        "flexibleVersions": "2+", **properties, "fields": list(fields) or [field("A")],
    }  # fmt: skip
    present = {key: value for key, value in document.items() if value is not None}
    return json.dumps(present, indent=1)


def field(
    name: str, kind: str = "int32", versions: str | None = "0+", **more: Any
) -> dict[str, Any]:
    given = {} if versions is None else {"versions": versions}
    return {"name": name, "type": kind, **given, **more}


def test_a_clean_message_has_no_findings() -> None:
    assert check_text(message(), "SmallRequest.json") == []


RULES: list[tuple[str, str, str, str]] = [
    # rule, severity, text, part of the problem
    ("flexible-versions", "error", message(flexibleVersions=None), "is missing"),
    ("load", "error", message(flexibleVersions="2-3"), "flexibleVersions 2-3 ends"),
    ("request-only", "error",
     message(type="response", name="SmallResponse", listeners=["broker"]), "listeners on a"),
    ("request-only", "error",
     message(type="data", name="Small", latestVersionUnstable=True), "latestVersionUnstable on"),
    ("listeners", "error", message(listeners=["raft"]), "'raft' is not a listener"),
    ("listeners", "warning", message(listeners=["zkBroker"]), "until Kafka 3.9"),
    ("inline-in-common", "error",
     message(field("A", "Common"), commonStructs=[{"name": "Common", "versions": "0+", "fields": [
         field("B", "[]Deep", fields=[field("C")])]}]), "declares another struct"),
    ("struct-versions", "error",
     message(field("A", "[]Outer", "2+", fields=[field("B", "Inner", "0-1", fields=[field("C")])])),
     "struct Inner exists at 0-1, but what contains it at 2-3"),
    ("struct-versions", "error",
     message(field("A", "[]S", None, tag=0, taggedVersions="2+", fields=[field("B")])),
     "has no versions"),
    ("versions", "error", message(field("A", versions="")), "versions is empty"),
    ("valid-versions", "error", message(validVersions=""), "validVersions is empty"),
    ("entity-type", "error", message(field("A", entityType="")), "entityType is empty"),
    ("default", "error", message(field("A", default="0X10")), "'0X10'"),
    ("tagged-records", "error",
     message(field("A", "records", "2+", tag=0, taggedVersions="2+")), "cannot be tagged"),
    ("map-key", "error",
     message(field("A", "[]S", fields=[field("B", "int32", "2+", tag=0, taggedVersions="2+",
                                             mapKey=True)])), "cannot be a map key"),
    ("tagged-flexible", "error",
     message(field("A", "string", "2+", tag=0, taggedVersions="2+", flexibleVersions="3+")),
     "flexibleVersions 3+ lacks"),
    ("not-java", "warning", message(field("A", "[]bytes")), "does not compile"),
    ("not-java", "warning",
     message(field("A", "bytes", "2+", tag=0, taggedVersions="2+", zeroCopy=True)), "zeroCopy"),
    ("not-java", "warning", message(field("A", "uint32", default="2147483648")),
     "does not compile"),
    ("name", "error", message(name="Small"), "a request is called Small"),
    ("name", "error", message(type="response"), "a response is called"),
    ("name", "error", message(type="coordinator-value", name="Small"), "coordinator-value"),
    ("name", "warning", message(type="metadata", name="Small"), "metadata record"),
    ("api-key", "error", message(type="metadata", name="SmallRecord", apiKey=None), "api key"),
    ("api-key", "error",
     message(type="coordinator-value", name="SmallValue", apiKey=None), "api key"),
    ("coordinator-key", "error",
     message(type="coordinator-key", name="SmallKey", flexibleVersions="none"), "has versions 0-3"),
    ("coordinator-key", "error",
     message(type="coordinator-key", name="SmallKey", validVersions="0", flexibleVersions="0+"),
     "is flexible"),
    ("deprecated-versions", "error", message(deprecatedVersions="2-4"), "outside 0-3"),
    ("tag-gap", "error", message(field("A", tag=1, taggedVersions="2+")), "leaves out tag 0"),
    ("tagged-versions-end", "error", message(field("A", tag=0, taggedVersions="2-3")), "ends"),
    ("load", "error",
     message(field("A", "string", nullableVersions="1+", default="null")), "nullable only at 1+"),
    ("map-key", "error", message(field("A", mapKey=True)), "of the message itself"),
    ("map-key", "warning",
     message(field("A", "[]S", fields=[field("K", "[]int8", mapKey=True)])), "of type []int8"),
    ("map-key", "warning",
     message(field("A", "S", fields=[field("K", mapKey=True)])), "is not an array's element"),
    ("entity-type", "error", message(field("A", entityType="groupId")), "on a field of type int32"),
    ("entity-type", "error", message(field("A", entityType="planet")), "is not an entity type"),
    ("never-present", "warning", message(field("A", versions="5+")), "contains none of 0-3"),
    ("nullable-outside", "warning",
     message(field("A", "string", "3+", nullableVersions="0+")), "reaches outside"),
    ("struct-versions", "error",
     message(field("A", "S"),
             commonStructs=[{"name": "S", "versions": "1+", "fields": [field("X")]}]),
     "only defined at 1+"),
    ("unused-struct", "warning",
     message(commonStructs=[{"name": "S", "versions": "0+", "fields": [field("X")]}]), "not used"),
    ("empty-struct", "warning", message(field("A", "[]S", fields=[])), "has no fields"),
    ("name", "warning", message(field("ab"), field("aB")), "only in case"),
    ("alias", "error", message(field("A"), field("B", aliases=["A"])), "also means another"),
    ("load", "error", message(field("A", "boolean")), "'boolean' is not a type"),
    ("load", "error", message(field("A", zeroCopy=True)), "zeroCopy is for bytes"),
    ("load", "error", message(field("A", nullableVersions="0+")), "cannot be nullable"),
    ("load", "error", "{", "not valid JSON"),
]  # fmt: skip


def remedied(finding: Finding) -> bool:
    return bool(finding.remedy) and finding.source == "S.json" and "\n" not in str(finding)


@pytest.mark.parametrize(("rule", "severity", "text", "problem"), RULES)
def test_each_rule(rule: str, severity: str, text: str, problem: str) -> None:
    found = [item for item in check_text(text, "S.json") if item.rule == rule]
    assert [item.severity for item in found] == [severity]
    assert problem in found[0].problem
    assert remedied(found[0])
    assert found[0].line is not None


def test_a_message_without_versions_may_nest_structs_in_common_ones() -> None:
    """Kafka's generator makes nothing of it."""
    common = {
        "name": "Common",
        "versions": "0+",
        "fields": [field("B", "[]D", fields=[field("C")])],
    }
    given = {"validVersions": "none", "flexibleVersions": "none", "commonStructs": [common]}
    found = check_text(message(field("A", "Common"), **given), "SmallRequest.json")
    assert [each.rule for each in found if each.severity == "error"] == []


def test_findings_point_at_the_field() -> None:
    text = message(field("A"), field("B", entityType="groupId"))
    (finding,) = check_text(text, "S.json")
    assert finding.line is not None
    assert '"B"' in "".join(text.splitlines()[finding.line - 1 : finding.line + 1])
    assert str(finding).startswith(f"S.json:{finding.line}: error: B: entityType groupId")


def write(folder: Path, *texts: str) -> Path:
    for text in texts:
        name = json.loads(text)["name"]
        (folder / f"{name}.json").write_text(text)
    return folder


RESPONSE = {"type": "response", "name": "SmallResponse"}


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        ("pair", [message(), message(**RESPONSE, validVersions="0-2")]),
        ("pair", [message(), message(**RESPONSE, flexibleVersions="1+")]),
        ("pair", [message()]),
        ("pair", [message(**RESPONSE)]),
        ("duplicate-api-key", [message(), message(name="OtherRequest"), message(**RESPONSE)]),
        (
            "duplicate-name",
            [
                message(),
                message(**RESPONSE),
                message(name="Other", type="data", apiKey=None, aliases=["SmallRequest"]),
            ],
        ),
        (
            "duplicate-api-key",
            [
                message(type="metadata", name="OneRecord"),
                message(type="metadata", name="TwoRecord"),
            ],
        ),
    ],
)
def test_rules_about_a_folder(rule: str, texts: list[str], tmp_path: Path) -> None:
    assert [item.rule for item in check_directory(write(tmp_path, *texts))] == [rule]


def test_a_pair_that_fits(tmp_path: Path) -> None:
    assert check_directory(write(tmp_path, message(), message(**RESPONSE))) == []


def test_a_file_that_does_not_load_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, message(), message(**RESPONSE))
    (tmp_path / "Broken.json").write_text("{")
    (tmp_path / "Binary.json").write_bytes(b"\xff")
    (tmp_path / "Misnamed.json").write_text(message(name="Right", type="data", apiKey=None))
    assert [item.rule for item in check_directory(tmp_path)] == ["load", "load", "file-name"]


@pytest.mark.parametrize("folder", sorted(schemas_directory().glob("k*")), ids=lambda it: it.name)
def test_shipped_schemas_have_no_errors(folder: Path) -> None:
    found = check_directory(folder)
    assert [str(item) for item in found if item.severity == "error"] == []
    warned = {(item.rule, Path(item.source).stem) for item in found}
    if folder.name != "kafka":
        assert warned - {("listeners", "AlterPartitionReassignmentsRequest")} == set()
        return
    # Kafka's own: ranges nobody tidied, listeners of ZooKeeper's days, and two logs that number
    # their records apart.
    assert warned == {
        ("listeners", "StopReplicaRequest"),
        ("listeners", "ControlledShutdownRequest"),
        ("listeners", "LeaderAndIsrRequest"),
        ("listeners", "UpdateMetadataRequest"),
        ("nullable-outside", "CreateTopicsResponse"),
        ("nullable-outside", "DescribeConfigsResponse"),
        ("nullable-outside", "UpdateMetadataRequest"),
        ("duplicate-api-key", "RemoteLogSegmentMetadataRecord"),
        ("duplicate-api-key", "UnregisterBrokerRecord"),
        ("duplicate-api-key", "TopicRecord"),
        ("duplicate-api-key", "RemoteLogSegmentMetadataSnapshotRecord"),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (message(flexibleVersions="2-3"), "flexibleVersions 2-3 ends"),
        (message(field("A", "string", nullableVersions="1+", default="null")), "nullable only at"),
        (message(field("A", "[]int8", default="null")), "nullable only at none"),
        (message(field("A", "S", default="null", fields=[field("B")])), "nullable only at none"),
    ],
)
def test_a_dialect_refuses_what_the_lint_refuses(text: str, problem: str, tmp_path: Path) -> None:
    """Both, as Kafka's own generator does: else values of a draft served here would not exist in
    the broker that is generated from it."""
    (tmp_path / "SmallRequest.json").write_text(text)
    with pytest.raises(SchemaError, match=problem) as refused:
        load_dialect(tmp_path)
    (found,) = check_text(text, str(refused.value.source))
    assert (found.rule, found.severity) == ("load", "error")
    assert (found.problem, found.line) != ("", None)
    assert found.problem == refused.value.problem


def test_every_wrong_field_is_reported_in_one_run() -> None:
    schema = {
        "apiKey": 40, "type": "request", "name": "ARequest", "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": [
            {"name": "x-y", "type": "string", "versions": "0+"},
            {"name": "Fine", "type": "int8", "versions": "0+"},
            {"name": "Inner", "type": "[]Thing", "versions": "0+", "fields": [
                {"name": "Deep", "type": "strin", "versions": "0+"},
                {"name": "Falling", "type": "int32", "versions": "3-1"},
            ]},
            {"name": "fine", "type": "int8", "versions": "0+"},
        ],
    }  # fmt: skip
    problems = [str(each) for each in check_text(json.dumps(schema), "a.json")]
    for part in ("'x-y'", "'strin'", "'3-1'", "collides with the field Fine"):
        assert sum(part in each for each in problems) == 1, (part, problems)
    assert len(problems) == 4
