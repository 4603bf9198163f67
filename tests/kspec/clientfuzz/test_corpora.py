"""Corpora: the same files twice, every frame as it was made, and Go reads its own."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import kproto
from kspec.clientfuzz.cli import fuzz
from kspec.clientfuzz.corpora import go_literal, seeds, write_seeds
from tests.support.toolchain import require

KAFKA = kproto.dialect("kafka")
MESSAGE = "ListPartitionReassignmentsResponse"

GO_TEST = """package seeds

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"testing"
)

func FuzzMESSAGE(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		sum := sha1.Sum(bytes.Clone(data))
		out, err := os.OpenFile("seen", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		fmt.Fprintln(out, hex.EncodeToString(sum[:]))
	})
}
""".replace("MESSAGE", MESSAGE)


def made(api_keys: tuple[int, ...] = (46,)) -> list[bytes]:
    return [each.data for each in seeds(KAFKA, api_keys, "response", mutated=40)]


def test_good_frames_and_damaged_ones() -> None:
    every = list(seeds(KAFKA, [46], "response", mutated=40))
    good = [each for each in every if each.kind in ("default", "filled", "least", "greatest")]
    assert good
    for each in good:
        header, _ = kproto.decode_response(each.data, api_key=46, api_version=each.version)
        assert header.correlation_id
    assert len(every) >= 40 + len(good)
    assert {each.data for each in every} - {each.data for each in good}


def test_raw_files_are_called_by_their_bytes(tmp_path: Path) -> None:
    count = write_seeds("libfuzzer", tmp_path, seeds(KAFKA, [46], "response", mutated=40))
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert count == len(files)
    assert set(files.values()) == set(made())
    assert all(hashlib.sha1(data).hexdigest() == name for name, data in files.items())


def test_jazzer_has_a_folder_a_message(tmp_path: Path) -> None:
    write_seeds("jazzer", tmp_path, seeds(KAFKA, [46, 43], "request", mutated=5))
    folders = {path.name for path in tmp_path.iterdir()}
    assert folders == {"ListPartitionReassignmentsRequest", "ElectLeadersRequest"}


def test_the_command_writes_the_same_twice(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        arguments = ["seeds", "--format", "go", "--api", "46", "--seed", "3"]
        done = CliRunner().invoke(fuzz, [*arguments, "--out", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        folder = tmp_path / name / f"Fuzz{MESSAGE}"
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert found[0] == found[1]
    assert found[0]


def test_every_byte_has_a_literal() -> None:
    text = go_literal(bytes(range(256)))
    header, literal, end = text.split("\n")
    assert (header, end) == ("go test fuzz v1", "")
    inside = literal.removeprefix('[]byte("').removesuffix('")')
    assert inside.encode("ascii").decode("unicode_escape").encode("latin-1") == bytes(range(256))


@pytest.mark.go
@pytest.mark.slow
def test_go_reads_its_corpus(tmp_path: Path) -> None:
    require("go")
    (tmp_path / "go.mod").write_text("module seeds\n\ngo 1.21\n")
    (tmp_path / "seeds_test.go").write_text(GO_TEST)
    corpus = tmp_path / "testdata" / "fuzz"
    count = write_seeds("go", corpus, seeds(KAFKA, [46], "response", mutated=40))
    done = subprocess.run(
        ["go", "test", "-count=1", "./..."],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    seen = (tmp_path / "seen").read_text().split()
    assert len(seen) == count
    assert set(seen) == {hashlib.sha1(data).hexdigest() for data in made()}
