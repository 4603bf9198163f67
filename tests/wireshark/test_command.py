"""``kproto schema wireshark``, without tshark."""

from pathlib import Path

from click.testing import CliRunner

from kproto import dialect
from kproto.cli.schema import schema_group
from kproto.wireshark.generate import filter_names

SCHEMA = """{"apiKey": 3, "type": "%s", "name": "Metadata%s", "validVersions": "0", "fields": [
  {"name": "Invented", "type": "int64", "versions": "0"}]}"""


def run(*arguments: str) -> str:
    result = CliRunner().invoke(schema_group, ["wireshark", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_file_is_what_standard_output_gets(tmp_path: Path) -> None:
    out = tmp_path / "kproto.lua"
    assert run("--out", str(out)) == ""
    assert out.read_text() == run()


def test_every_message_of_every_dialect_is_there() -> None:
    text = run()
    for key, api in dialect("kafka").apis.items():
        for direction in ("request", "response"):
            name = api.request.MESSAGE_NAME.removesuffix("Request")
            assert f'["kafka"]["{direction} {key}"] = {{name = "{name}"' in text
    assert 'DIALECTS["kip-455-old"]["request 45"] = {name = "AlterPartitionAssignments"' in text


def test_a_folder_of_schemas_becomes_a_draft(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for direction in ("request", "response"):
        name = direction.capitalize()
        (folder / f"Metadata{name}.json").write_text(SCHEMA % (direction, name))
    text = run("--draft", str(folder))
    assert 'DIALECTS["mine"]["request 3"] = {name = "Metadata", versions = {0, 0}' in text
    assert 'filter = "invented"' in text
    assert "kip-455-old" not in text


def test_a_filter_has_one_type() -> None:
    names = filter_names(dialect("kafka"))
    assert len({*names.values()}) == len(names)
    assert names["error_code", "int16"] == "error_code"
    assert names["producer_epoch", "int16"] == "producer_epoch"
    assert names["producer_epoch", "int32"] == "producer_epoch_int32"
