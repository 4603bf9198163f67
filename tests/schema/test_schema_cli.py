"""``kproto schema``: what it prints, and how it exits."""

import json
import zipfile
from pathlib import Path

import pytest

from kproto.cli.run import run
from kproto.cli.schema import schema_group
from kproto.schema.load import load_directory, schemas_directory

SCHEMAS = schemas_directory()
KIP_860 = """{
  "apiKey": 45, "type": "request", "name": "GuardRequest",
  "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    { "name": "AllowReplicationFactorChange", "type": "boolean", "versions": "1+" }
  ]
}"""


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(schema_group, "kproto schema", [str(item) for item in arguments])
    shown = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, shown.out, shown.err


def test_diff_of_the_drafts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "diff", SCHEMAS / "kip_455_old", SCHEMAS / "kip_455_new")
    assert (code, err) == (1, "")
    assert "breaking: ListPartitionReassignmentsRequest v0 Topics.PartitionIds: became" in out
    assert out.endswith("6 messages compared: 1 breaking changes, 2 compatible; breaking\n")


def test_diff_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "diff", "--draft", "--json", SCHEMAS / "kip_860", SCHEMAS / "kafka")
    found = json.loads(out)
    assert (code, found["compatible"], len(found["compared"])) == (0, True, 2)
    assert [item["kind"] for item in found["changes"]] == ["listeners"]
    assert len(found["only_new"]) == len(load_directory(SCHEMAS / "kafka")) - 2


def test_diff_of_two_files(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(
        capsys, "diff", SCHEMAS / "kip_183" / "ElectPreferredLeadersRequest.json",
        SCHEMAS / "kafka" / "ElectLeadersRequest.json",
    )  # fmt: skip
    assert code == 0
    assert "compatible: ElectLeadersRequest v0->2 ElectionType: int8 added" in out


def test_check_says_where_and_how(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "GuardRequest.json"
    path.write_text(KIP_860)
    code, out, _ = call(capsys, "check", path)
    assert code == 1
    assert f"{path}:5: error: AllowReplicationFactorChange: 'boolean' is not a type" in out
    assert "--lenient" in out
    assert call(capsys, "check", "--lenient", path)[0] == 0


def test_check_as_json_and_strictly(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "OddName.json").write_text(KIP_860.replace("boolean", "bool"))
    code, out, _ = call(capsys, "check", "--json", tmp_path)
    assert code == 0
    assert {item["rule"] for item in json.loads(out)} == {"file-name", "pair"}
    assert call(capsys, "check", "--strict", tmp_path)[0] == 1


def test_import_reports(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    jar = tmp_path / "kafka-clients-4.1.0.jar"
    with zipfile.ZipFile(jar, "w") as out_jar:
        out_jar.writestr("common/message/GuardRequest.json", KIP_860.replace("boolean", "bool"))
    empty = tmp_path / "kafka-server-4.1.0.jar"
    with zipfile.ZipFile(empty, "w"):
        pass
    into = tmp_path / "schemas"
    code, out, _ = call(capsys, "import", jar, empty, "--into", into)
    assert code == 0
    assert "1 messages (1 request), 2 versions" in out
    assert "Kafka 4.1.0: no message JSON in kafka-server" in out
    code, out, _ = call(capsys, "import", jar, "--into", into, "--json")
    assert json.loads(out)["versions"] == 2
    assert list(load_directory(into)) == ["GuardRequest"]


def test_failures_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "kafka-clients-4.1.0.jar"
    broken.write_bytes(b"no jar")
    code, out, err = call(capsys, "import", broken, "--into", tmp_path / "out")
    assert (code, out, err.count("\n")) == (1, "", 1)
    code, _, err = call(capsys, "diff", tmp_path, SCHEMAS / "kafka")
    assert (code, err.count("\n")) == (1, 1)
    assert "contains no *.json file" in err


def test_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert call(capsys, "check", tmp_path / "nowhere")[0] == 2
    assert call(capsys, "diff", SCHEMAS / "kafka", SCHEMAS / "releases.json")[0] == 2
    assert call(capsys, "import", SCHEMAS / "kafka")[0] == 2
    for command in ("import", "check", "diff"):
        code, out, _ = call(capsys, command, "--help")
        assert code == 0
        assert "Usage" in out
