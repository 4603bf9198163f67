"""The clients of each language with a real Kafka client of that language: the situations of
``situations.txt``, each a test there, against this checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.test_recipes import installed
from tests.support.toolchain import require

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SECONDS = 300
SITUATIONS = sorted((HERE / "situations.txt").read_text().split("\n")[:-1])


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """How the clients find the server: this checkout's, by a variable."""
    command = tmp_path / "mockbroker"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mockbroker "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "KPROTO_MOCKBROKER": str(command), "PYTHONPATH": str(ROOT)}


def words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def run(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.go
def test_go(environment: dict[str, str]) -> None:
    require("go")
    code, out = run(["go", "test", "-count=1", "-v", "./..."], HERE / "go", environment)
    assert code == 0, out
    passed = re.findall(r"^--- PASS: Test(\w+) ", out, re.M)
    assert sorted(map(words, passed)) == SITUATIONS


@pytest.mark.go
def test_a_failed_go_test_shows_the_traffic(tmp_path: Path, environment: dict[str, str]) -> None:
    """The package is linked with nothing but the standard library; the server is gone afterwards,
    and without one the error says how to install it."""
    require("go")
    (tmp_path / "go.mod").write_text(
        "module failing\n\ngo 1.24\n\nrequire github.com/kproto/kproto/clients/go v0.0.0\n\n"
        f"replace github.com/kproto/kproto/clients/go => {ROOT / 'clients/go'}\n"
    )
    (tmp_path / "failing_test.go").write_text(
        """package failing

import (
	"net"
	"testing"

	kproto "github.com/kproto/kproto/clients/go"
)

func TestFails(t *testing.T) {
	rule := kproto.Fault{Name: "unused", API: "Produce", Error: "NOT_CONTROLLER"}
	mock := kproto.Start(t, kproto.Faults(rule), kproto.FaultsMustHit())
	connection, err := net.Dial("tcp", mock.Seeds()[0])
	if err != nil {
		t.Fatal(err)
	}
	request := "\\x00\\x00\\x00\\x0b\\x00\\x12\\x00\\x00\\x00\\x00\\x00\\x07\\x00\\x01x"
	_, _ = connection.Write([]byte(request))
	_, _ = connection.Read(make([]byte, 100))
	t.Error("deliberate")
}
"""
    )
    code, out = run(["go", "test", "-count=1", "./..."], tmp_path, environment)
    assert code == 1
    assert "deliberate" in out
    assert re.search(r"broker 1 <- x  ApiVersions v0 #7", out), out
    assert "fault rule that no request has hit: unused" in out
    del environment["KPROTO_MOCKBROKER"]
    environment["PATH"] = os.pathsep.join(
        each for each in environment["PATH"].split(os.pathsep)
        if not (Path(each) / "mockbroker").exists()
    )  # fmt: skip
    code, out = run(["go", "test", "-count=1", "./..."], tmp_path, environment)
    assert code == 1
    assert "install it: uv tool install 'kproto[mock] @ git+" in out


@pytest.fixture
def node_project(tmp_path: Path) -> Path:
    """A folder where Node.js finds this checkout's package, and kafkajs."""
    folder = tmp_path / "project"
    modules = folder / "node_modules"
    modules.mkdir(parents=True)
    # As npm does for a folder, and so that the package finds nothing of the checkout.
    shutil.copytree(ROOT / "clients/js", modules / "kproto")
    (modules / "kafkajs").symlink_to(installed("kafkajs") / "node_modules/kafkajs")
    return folder


@pytest.mark.node
def test_node(node_project: Path, environment: dict[str, str]) -> None:
    shutil.copy(HERE / "js/situations.test.mjs", node_project)
    command = ["node", "--test", "--test-reporter=tap", "situations.test.mjs"]
    code, out = run(command, node_project, environment)
    assert code == 0, out
    assert sorted(re.findall(r"^ok \d+ - (.+)$", out, re.M)) == SITUATIONS


@pytest.mark.node
def test_a_failed_node_test_shows_the_traffic(
    node_project: Path, environment: dict[str, str]
) -> None:
    (node_project / "failing.test.mjs").write_text(
        """import { test } from 'node:test'
import { withMock } from 'kproto'

const rule = { name: 'unused', api: 'Produce', error: 'NOT_CONTROLLER' }

test('deliberate', withMock({}, async mock => {
  await mock.advance('1s')
  throw new Error('deliberate')
}))
test('strict', withMock({ strict_faults: true, faults: [rule] }, async mock => {
  const refused = await mock.stopBroker(9).catch(error => error.message)
  if (!/^mockbroker: there is no broker 9/.test(refused)) throw new Error(refused)
}))
"""
    )
    command = ["node", "--test", "failing.test.mjs"]
    code, out = run(command, node_project, environment)
    assert code == 1
    assert "the journal of the mock cluster:" in out
    assert "fault rule that no request has hit: unused" in out
    assert re.search(r"^(#|\S) fail 2$", out, re.M), out
