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

from kproto import builds
from tests.recipes.test_recipes import installed
from tests.support.maven import artifact, with_dependencies
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


def without_mockbroker(environment: dict[str, str]) -> dict[str, str]:
    """Where the clients find no server."""
    folders = environment["PATH"].split(os.pathsep)
    path = os.pathsep.join(each for each in folders if not (Path(each) / "mockbroker").exists())
    found = {**environment, "PATH": path}
    del found["KPROTO_MOCKBROKER"]
    return found


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
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

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

func TestWaitsInVain(t *testing.T) {
	mock := kproto.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	mock.WaitFor(ctx, "Produce")
}

func TestWithoutServer(t *testing.T) {
	mock := kproto.Start(t)
	out, err := exec.Command("pgrep", "-P", fmt.Sprint(os.Getpid()), "-f", "no-cluster").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-9", strings.TrimSpace(string(out))).Run(); err != nil {
		t.Fatal(err)
	}
	for { // until the death of the server is known
		mock.WaitFor(t.Context(), "Produce")
	}
}
"""
    )
    code, out = run(["go", "test", "-count=1", "./..."], tmp_path, environment)
    assert code == 1
    assert "deliberate" in out
    assert re.search(r"broker 1 <- x  ApiVersions v0 #7", out), out
    assert "fault rule that no request has hit: unused" in out
    assert "waiting for Produce: context canceled" in out
    assert re.search(r"of this test binary has ended \(signal: killed\)", out), out
    command = ["go", "test", "-count=1", "./..."]
    code, out = run(command, tmp_path, without_mockbroker(environment))
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
    code, out = run(command, node_project, without_mockbroker(environment))
    assert code == 1
    assert "install it: uv tool install 'kproto[mock] @ git+" in out


_PATIENT = "--testTimeout=60000"
RUNNERS = {
    "vitest": ["vitest/vitest.mjs", "run", "--globals", "--no-color", _PATIENT],
    "jest": ["jest/bin/jest.js", "--no-watchman", "--runInBand", _PATIENT],
}
"""The script of each runner, with its options."""


@pytest.mark.node
@pytest.mark.parametrize("runner", RUNNERS)
def test_other_runners_of_node(tmp_path: Path, environment: dict[str, str], runner: str) -> None:
    """jest, which takes CommonJS, loads our module again for each file, but there is one server."""
    require("node", "npm")
    files = sorted((HERE / "js").glob("package*.json"))

    def build(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        builds.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder)

    packages = builds.built("clients/js-runners", [file.read_text() for file in files], build)
    shutil.copytree(ROOT / "clients/js", tmp_path / "node_modules/kproto")
    tests = (HERE / "js/runners.test.mjs").read_text()
    if runner == "vitest":
        (tmp_path / "runners.test.mjs").write_text(tests)
    else:
        required = re.sub(r"import (\{.*\}) from ('\w+')", r"const \1 = require(\2)", tests)
        (tmp_path / "runners.test.cjs").write_text(required)
        config = "{ testMatch: ['**/*.test.cjs'], moduleFileExtensions: ['cjs', 'mjs', 'js'] }"
        (tmp_path / "jest.config.js").write_text(f"module.exports = {config}\n")
        (tmp_path / "later.test.cjs").write_text(
            """const { start } = require('kproto')
const { execSync } = require('node:child_process')

test('one server', async () => {
  const mock = await start()
  const servers = execSync(`pgrep -fc -P ${process.pid} [n]o-cluster`, { encoding: 'utf8' })
  await mock.stop()
  expect(servers.trim()).toBe('1')
})
"""
        )
    (tmp_path / "package.json").write_text("{}")
    script, *options = RUNNERS[runner]
    command = ["node", str(packages / "node_modules" / script), *options]
    code, out = run(command, tmp_path, environment)
    assert code == 1, out
    passed = 1 if runner == "vitest" else 2
    assert re.search(rf"Tests:? +2 failed(,| \|) {passed} passed", out), out
    assert "the journal of the mock cluster:" in out
    assert "deliberate" in out
    assert "fault rule that no request has hit: unused" in out


@pytest.fixture(scope="session")
def java_module() -> Path:
    """The jar of clients/java, built by Maven as its users do."""
    require("java", "maven")
    source = ROOT / "clients/java"
    files = [source / "pom.xml", *sorted((source / "src").rglob("*.java"))]

    def build(folder: Path) -> None:
        for file in files:
            copy = folder / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        builds.run(["mvn", "-B", "-q", "package"], folder)

    (jar,) = builds.built("clients/java", [each.read_text() for each in files], build).glob(
        "target/*.jar"
    )
    return jar


def run_junit(
    source: Path, module: Path, environment: dict[str, str], folder: Path
) -> tuple[int, str, dict[str, str]]:
    """Compile the tests in a file and run them in parallel. The exit code, the output, and the name
    of each test with its result."""
    junit = artifact("org.junit.platform:junit-platform-console-standalone", "1.11.4")
    libraries = [module, *(installed("kafka-clients") / "lib").glob("*.jar")]
    path = os.pathsep.join(map(str, [folder, *libraries]))
    options = ["-d", str(folder), "--release", "17", "-cp", f"{path}{os.pathsep}{junit}"]
    code, out = run(["javac", *options, str(source)], folder, environment)
    assert code == 0, out
    command = [
        *("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", str(junit), "execute"),
        *("--scan-classpath", str(folder), "-cp", path, "--details=tree", "--disable-ansi-colors"),
        *("--details-theme=ascii", "--config=junit.jupiter.execution.parallel.enabled=true"),
    ]
    code, out = run(command, folder, environment)
    results = re.findall(r"^[ |]*[+'\\]-- (\w+)\(MockClusters\).* \[(OK|X)\]", out, re.M)
    return code, out, dict(results)


@pytest.mark.java
def test_java(java_module: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    source = HERE / "java/SituationsTest.java"
    code, out, results = run_junit(source, java_module, environment, tmp_path)
    assert code == 0, out
    assert set(results.values()) == {"OK"}
    assert sorted(map(words, results)) == SITUATIONS


@pytest.mark.java
def test_a_java_container(java_module: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    """There is no container engine: a process runs the container's command, in its environment."""
    source = HERE / "java/ContainerProgram.java"
    jars = with_dependencies([("org.testcontainers:testcontainers", "2.0.5")])
    libraries = [*(installed("kafka-clients") / "lib").glob("*.jar"), *jars]
    path = os.pathsep.join(map(str, [tmp_path, java_module, *libraries]))
    code, out = run(["javac", "-d", str(tmp_path), "-cp", path, str(source)], tmp_path, environment)
    assert code == 0, out
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", path, "ContainerProgram"]
    code, out = run(command, tmp_path, environment)
    assert code == 0, out
    assert re.findall(r"^(?:[12] localhost true|[12]|false)$", out, re.M) == [
        "1 localhost true", "2 localhost true", "1", "false",
    ], out  # fmt: skip


@pytest.mark.java
def test_a_failed_java_test_shows_the_traffic(
    java_module: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    """And without a server, the error says how to install it."""
    source = tmp_path / "FailingTest.java"
    source.write_text(
        """import io.github.kproto.*;
import java.net.Socket;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(MockExtension.class)
class FailingTest {
    @Test
    void deliberate(MockClusters clusters) throws Exception {
        var mock = clusters.start();
        String[] address = mock.bootstrap().split(",")[0].split(":");
        try (var socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            byte[] request = {0, 0, 0, 11, 0, 18, 0, 0, 0, 0, 0, 7, 0, 1, 'x'};
            socket.getOutputStream().write(request);
            socket.getInputStream().read();
        }
        throw new AssertionError("deliberate");
    }

    @Test
    void strict(MockClusters clusters) {
        var rule = new Fault().name("unused").api("Produce").error("NOT_CONTROLLER");
        var mock = clusters.start(new ClusterOptions().strictFaults(true).faults(rule));
        mock.stopBroker(9);
    }

    @Test
    void closes(MockClusters clusters) {
        try (var mock = Kproto.start()) {
            mock.advance("1s");
        }
    }

    @Nested
    class Shared {
        static Mock shared;
        Mock own;

        @BeforeAll
        static void startShared(MockClusters clusters) {
            shared = clusters.start();
        }

        @BeforeEach
        void startOwn(MockClusters clusters) {
            own = clusters.start();
        }

        @RepeatedTest(2)
        void both(MockClusters clusters) {
            shared.advance("1s");
            own.advance("1s");
        }
    }

    @AfterAll
    static void withoutServer() throws Exception {
        ProcessHandle.current().children().forEach(ProcessHandle::destroyForcibly);
        ProcessHandle.current().children().forEach(each -> each.onExit().join());
        Kproto.start();
    }
}
"""
    )
    code, out, results = run_junit(source, java_module, environment, tmp_path)
    assert code == 1
    assert results == {"deliberate": "X", "strict": "X", "closes": "OK", "both": "OK"}, out
    assert len(re.findall(r"repetition [12] of 2.*\[OK\]", out)) == 2, out
    assert re.search(r"mockbroker does not answer at \S+; has it been killed\?", out), out
    assert "the journal of the mock cluster of FailingTest.deliberate(MockClusters):" in out
    assert re.search(r"broker 1 <- x  ApiVersions v0 #7", out), out
    assert "RefusedException: mockbroker: there is no broker 9" in out
    assert "fault rule that no request has hit: unused" in out
    code, out, results = run_junit(source, java_module, without_mockbroker(environment), tmp_path)
    assert code == 1
    assert set(results.values()) == {"X"}
    assert "install it: uv tool install 'kproto[mock] @ git+" in out
