"""``kproto show | decode | encode | codegen``: what they print and how they end."""

import base64
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import kproto
from kproto.__main__ import cli
from kproto.cli.run import run
from kproto.messages import ApiVersionsResponse, MetadataRequest
from kproto.messages.api_versions_response import ApiVersion

FRAME = (
    "0000002c002d000000000002000361636300"
    "0000ea600204666f6f020000000004000000040000000500000006000000"
)

HEARTBEAT = '{"groupId":"g","generationId":7,"memberId":"m"}'


def kproto_cli(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    with pytest.raises(SystemExit) as ended:
        run(cli, "kproto", list(arguments))
    out = capsys.readouterr()
    return int(ended.value.code or 0), out.out, out.err


@pytest.mark.requirement("C-10")
def test_decode_a_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    raw, text = tmp_path / "frame.bin", tmp_path / "frame.hex"
    raw.write_bytes(bytes.fromhex(FRAME))
    text.write_text(f"{FRAME[:8]} {FRAME[8:]}\n")
    for source in (FRAME, str(raw), str(text)):
        code, out, _ = kproto_cli(capsys, "decode", "--request", source)
        decoded = json.loads(out)
        assert code == 0
        assert (decoded["dialect"], decoded["header"]["clientId"]) == ("kafka", "acc")
        assert decoded["body"]["topics"][0]["partitions"][0]["replicas"] == [4, 5, 6]


def test_decode_from_standard_input(capsys, monkeypatch):
    for given in (bytes.fromhex(FRAME), FRAME.encode()):
        stdin = io.TextIOWrapper(io.BytesIO(given))
        monkeypatch.setattr(sys, "stdin", stdin)
        code, out, _ = kproto_cli(capsys, "decode", "--request", "-")
        assert code == 0
        assert json.loads(out)["header"]["correlationId"] == 2


def test_bytes_lists_every_field_from_the_first_byte(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = kproto_cli(capsys, "decode", "--request", "--bytes", FRAME)
    rows = json.loads(out)["fields"]
    fields = {row["path"]: row for row in rows}
    assert len(fields) == len(rows)
    data = bytes.fromhex(FRAME)
    assert fields["size"] == {
        "offset": 0, "length": 4, "path": "size", "type": "int32", "value": 44,
    }  # fmt: skip
    client = fields["client_id"]
    assert (client["offset"], client["length"], client["value"]) == (12, 5, "acc")
    name = fields["topics[0].name"]
    assert data[name["offset"] : name["offset"] + name["length"]] == b"\x04foo"
    assert fields["topics[0].partitions[0].replicas"]["value"] == [4, 5, 6]


def test_bytes_gives_uuid_as_the_body_does(capsys: pytest.CaptureFixture[str]) -> None:
    topic = kproto.dialect("kafka").message("MetadataRequest.MetadataRequestTopic")(name="t")
    body = MetadataRequest(topics=[topic])
    frame = kproto.encode_request(body, api_version=12, correlation_id=1).hex()
    _, out, _ = kproto_cli(capsys, "decode", "--request", "--bytes", frame)
    rows = [row for row in json.loads(out)["fields"] if row["path"].endswith("topic_id")]
    assert rows[0]["value"] == base64.urlsafe_b64encode(bytes(16)).rstrip(b"=").decode()


def test_hex_is_a_line_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = kproto_cli(capsys, "decode", "--request", "--hex", FRAME)
    assert (code, err) == (0, "")
    assert '    23  04 66 6f 6f                          topics[0].name string "foo"\n' in out
    assert "[]int32 [4, 5, 6]" in out
    _, unfolded, _ = kproto_cli(capsys, "decode", "--request", "--hex", "--all", FRAME)
    assert "replicas[2] int32 6" in unfolded
    answer = kproto.encode_response(
        ApiVersionsResponse(error_code=35), api_version=3, correlation_id=8
    )
    _, out, _ = kproto_cli(capsys, "decode", "--response", "18", "3", "--hex", answer.hex())
    assert "error_code int16 35 UNSUPPORTED_VERSION" in out


@pytest.mark.parametrize("dialect", ["kafka", "auto"])
def test_a_bad_frame_as_far_as_it_goes(capsys: pytest.CaptureFixture[str], dialect: str) -> None:
    how = ("decode", "--request", "--dialect", dialect)
    told = "kproto: topics[0].partitions[0].replicas[1]: bytes needed: 4, left: 1 (at byte 37)\n"
    code, out, err = kproto_cli(capsys, *how, "--partial", FRAME[:76])
    assert (code, err) == (1, told)
    decoded = json.loads(out)
    assert (decoded["dialect"], decoded["header"]["clientId"]) == ("kafka", "acc")
    assert decoded["body"]["topics"][0]["partitions"] == [{"partitionIndex": 0, "replicas": [4]}]
    code, out, err = kproto_cli(capsys, *how, "--hex", FRAME[:76])
    assert (code, err) == (1, told)
    assert out.endswith("    37  00                                   (not decoded) 1 byte\n")
    code, out, err = kproto_cli(capsys, *how, "--partial", FRAME + "00")
    assert code == 1
    assert json.loads(out)["body"]["topics"][0]["partitions"][0]["replicas"] == [4, 5, 6]
    assert "size is 44 bytes, but 45 follow" in err


def test_what_only_a_draft_has_is_told_by_it(capsys: pytest.CaptureFixture[str]) -> None:
    frame = kproto.dialect("kip-240").encode_request(
        kproto.dialect("kip-240").apis[32240].request(), api_version=0, correlation_id=1
    )
    _, out, _ = kproto_cli(
        capsys, "decode", "--request", "--dialect", "auto", "--partial", frame[:-1].hex()
    )
    assert json.loads(out)["dialect"] == "kip-240"


@pytest.mark.requirement("C-10")
def test_decode_a_response(capsys: pytest.CaptureFixture[str]) -> None:
    body = ApiVersionsResponse(api_keys=[ApiVersion(api_key=45, max_version=1)])
    frame = kproto.encode_response(body, api_version=3, correlation_id=8).hex()
    code, out, _ = kproto_cli(capsys, "decode", "--response", "18", "3", frame)
    assert code == 0
    assert json.loads(out)["body"]["apiKeys"] == [{"apiKey": 45, "minVersion": 0, "maxVersion": 1}]


@pytest.mark.requirement("C-10")
def test_auto_names_the_dialect(capsys: pytest.CaptureFixture[str]) -> None:
    draft = "00000013002d0000000000010001630000ea60ffffffff"
    _, out, _ = kproto_cli(capsys, "decode", "--request", "--dialect", "auto", draft)
    assert json.loads(out)["dialect"] == "kip-455-new"
    _, out, _ = kproto_cli(capsys, "decode", "--request", "--dialect", "auto", FRAME)
    assert json.loads(out)["dialect"] == "kafka"


def test_encode(capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"timeoutMs":60000,"topics":[]}'
    name = "AlterPartitionReassignmentsRequest"
    assert kproto_cli(capsys, "encode", name, "0", text) == (0, "0000ea600100\n", "")
    draft = ("encode", "--dialect", "kip-455-new", name, "0", '{"timeoutMs":1,"topics":null}')
    assert kproto_cli(capsys, *draft) == (0, "00000001ffffffff\n", "")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("decode", "--request", FRAME[:-2]), 1, "size is 44 bytes, but 43 follow (at byte 0)"),
        (("decode", "--request", "no-such-file"), 1, "neither hexadecimal nor a readable file"),
        (
            ("decode", "--request", "00000"),
            1,
            "5 hexadecimal digits are not a whole number of bytes",
        ),
        (("decode", FRAME), 2, "Specify either --request or"),
        (("decode", "--request", "--hex", "--bytes", FRAME), 2, "Specify either --bytes or --hex"),
        (("decode", "--response", "45", "9", FRAME), 1, "not 9"),
        (("encode", "Metadata", "0", "{}"), 1, "no message 'Metadata'"),
        (("encode", "MetadataRequest", "99", "{}"), 1, "no version 99"),
        (("encode", "MetadataRequest", "x", "{}"), 2, "is not a valid integer"),
        (("encode", "MetadataRequest", "1", "{"), 1, "not JSON"),
        (("show", "MetadataRequest.MetadataRequestTopic"), 1, "is a struct"),
        (("show", "--dialect", "kip-1", "MetadataRequest"), 1, "no dialect 'kip-1'"),
        (("codegen", "--check", "--show", "MetadataRequest", "1"), 2, "only one of --check"),
        (("codegen", "--check", "--all"), 2, "only one of --check"),
        (("encode", "MetadataRequest.MetadataRequestTopic", "1", "{}"), 1, "only a message has"),
        (("nonsense",), 2, "No such command"),
        ((), 2, "kproto: Missing command. (see kproto --help)"),
        (("schema",), 2, "kproto: Missing command. (see kproto schema --help)"),
    ],
)
@pytest.mark.requirement("C-10")
def test_errors_are_one_line(capsys, arguments, code, text):
    ended, out, err = kproto_cli(capsys, *arguments)
    assert (ended, out) == (code, "")
    assert text in err
    assert err.count("\n") == 1


def test_output_that_cannot_be_written(capsys, monkeypatch):
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    code, _, err = kproto_cli(capsys, "encode", "HeartbeatRequest", "0", HEARTBEAT)
    assert (code, err) == (1, "kproto: No space left on device\n")


def show(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    code, out, _ = kproto_cli(capsys, "show", "--json", *arguments)
    assert code == 0
    fields: list[dict[str, Any]] = json.loads(out)["fields"]
    return fields


def test_show_tells_draft_from_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    """K455-15, K455-17: TargetReplicas in the draft's v3, two lists in the shipped one's."""
    shipped = [row["name"] for row in show(capsys, "LeaderAndIsrRequest", "3")]
    draft = show(capsys, "LeaderAndIsrRequest", "3", "--dialect", "kip-455-new")
    names = [row["name"] for row in draft]
    assert names[names.index("target_replicas") + 1] == "is_new"
    assert next(row for row in draft if row["name"] == "target_replicas")["nullable"]
    assert "target_replicas" not in shipped
    assert shipped[shipped.index("adding_replicas") + 1] == "removing_replicas"


def test_show_cuts_no_word_whatever_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, _ = kproto_cli(capsys, "show", "MetadataResponse", "12")
    assert code == 0
    for row in show(capsys, "MetadataResponse", "12"):
        cells = (row["name"], row["type"], row["encoding"], row["default"])
        assert any(all(cell in line for cell in cells) for line in out.splitlines()), row


def test_show_is_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = kproto_cli(capsys, "show", "FetchRequest", "17")
    assert code == 0
    assert "FetchRequest v17" in out
    assert "in tag 0" in out


def test_every_codec_is_generated(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = kproto_cli(capsys, "codegen", "--all")
    made, messages = (int(each) for each in re.findall(r"^(\d+) codecs of (\d+) messages", out)[0])
    names = kproto.dialect("kafka").message_names()
    versions = sum(len(kproto.dialect("kafka").message(name).VALID_VERSIONS) for name in names)
    assert (code, messages, made) == (0, len(names), 2 * versions)


def test_a_struct_has_no_codec_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ("codegen", "--show", "MetadataRequest.MetadataRequestTopic", "1")
    code, _, err = kproto_cli(capsys, *shown)
    assert (code, "its codec is part of its message's" in err) == (1, True)


def test_codegen(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = kproto_cli(capsys, "codegen", "--check")
    assert code == 0
    assert "up to date" in out
    code, out, _ = kproto_cli(capsys, "codegen", "--show", "HeartbeatRequest", "4")
    assert code == 0
    compile(out, "codec", "exec")
    assert "def decode(buf, offset=None):" in out


def test_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    context = click.Context(cli)
    names = cli.list_commands(context)
    assert set(names) > {"decode", "show"}
    for name in names:
        command = cli.get_command(context, name)
        assert command is not None
        code, out, _ = kproto_cli(capsys, name, "--help")
        assert code == 0
        assert command.help is not None
        assert "Usage: kproto" in out


@pytest.mark.parametrize("name", ["Metadata", "metadata", "METADATA", "3"])
def test_an_apis_request_and_response_are_both_shown(name, capsys):
    cli.main(["show", name, "9", "--json"], standalone_mode=False)
    shown = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["version"]) for each in shown] == [
        ("MetadataRequest", 9), ("MetadataResponse", 9)
    ]  # fmt: skip
    cli.main(["show", name, "9"], standalone_mode=False)
    table = capsys.readouterr().out
    assert table.index("MetadataRequest v9") < table.index("MetadataResponse v9")
