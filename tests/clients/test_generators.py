"""Generators of clients take the control port's OpenAPI document as it is, and what they write
compiles: oapi-codegen, openapi-typescript, openapi-generator; and a linter finds nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kproto.builds import built
from mockbroker.control import ROUTES
from mockbroker.control.document_forms import DOCUMENT_FORMS
from mockbroker.control.openapi import document
from tests.support.maven import artifact, artifacts
from tests.support.toolchain import require

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "generators"
SECONDS = 540
GENERATOR = ("org.openapitools:openapi-generator-cli", "7.25.0")
JACKSON = [
    ("com.fasterxml.jackson.core:jackson-annotations", "2.17.1"),
    ("com.fasterxml.jackson.core:jackson-core", "2.17.1"),
    ("com.fasterxml.jackson.core:jackson-databind", "2.17.1"),
    ("com.fasterxml.jackson.datatype:jackson-datatype-jsr310", "2.17.1"),
    ("jakarta.annotation:jakarta.annotation-api", "1.3.5"),
    ("com.google.code.findbugs:jsr305", "3.0.2"),
]
"""What the generated Java imports."""


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def written(folder: Path, version: str) -> Path:
    path = folder / "openapi.json"
    path.write_text(json.dumps(document(ROUTES, version=version)))
    return path


def packages() -> Path:
    """The folder with the packages of npm."""
    require("node", "npm")
    files = sorted(HERE.glob("package*.json"))

    def build(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder)

    return built("openapi-generators", [file.read_text() for file in files], build)


@pytest.mark.go
@pytest.mark.parametrize("version", DOCUMENT_FORMS)
def test_go(tmp_path: Path, version: str) -> None:
    require("go")
    for file in (HERE / "go.mod", HERE / "go.sum"):
        shutil.copy(file, tmp_path)
    path = written(tmp_path, version)
    client = tmp_path / "client.go"
    options = ["-generate", "types,client", "-package", "generated", "-o", str(client)]
    run(["go", "tool", "oapi-codegen", *options, str(path)], tmp_path)
    run(["go", "vet", "./..."], tmp_path)
    text = client.read_text()
    assert "func (c *Client) WaitForRequest(ctx context.Context, cluster string," in text
    assert 'map[string]interface{} `json:"delay' not in text


@pytest.mark.node
@pytest.mark.parametrize("version", DOCUMENT_FORMS)
def test_typescript_and_a_linter(tmp_path: Path, version: str) -> None:
    tools = packages() / "node_modules" / ".bin"
    path = written(tmp_path, version)
    run([str(tools / "openapi-typescript"), str(path), "-o", "client.d.ts"], tmp_path)
    run([str(tools / "tsc"), "--noEmit", "--strict", "client.d.ts"], tmp_path)
    out = run([str(tools / "redocly"), "lint", str(path), "--format=json"], tmp_path)
    found = json.loads(out[out.index("{") : out.rindex("}") + 1])
    assert found["totals"]["errors"] == 0
    assert found["totals"]["warnings"] == 0, found["problems"]


@pytest.mark.node
def test_the_types_of_our_own_package() -> None:
    tools = packages() / "node_modules" / ".bin"
    folder = HERE.parents[2] / "clients/js"
    command = [str(tools / "tsc"), "--noEmit", "--strict", "--allowImportingTsExtensions"]
    run([*command, "--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom",
         str(folder / "index.d.ts")], folder)  # fmt: skip


@pytest.mark.java
@pytest.mark.parametrize("version", DOCUMENT_FORMS)
def test_java(tmp_path: Path, version: str) -> None:
    require("java")
    path = written(tmp_path, version)
    generated = tmp_path / "client"
    run(
        [
            "java", "-Xmx512m", "-jar", str(artifact(*GENERATOR)), "generate", "-i", str(path),
            "-g", "java", "--library", "native", "-o", str(generated),
            "--additional-properties=openApiNullable=false",
        ],
        tmp_path,
    )  # fmt: skip
    sources = [str(each) for each in (generated / "src/main/java").rglob("*.java")]
    (tmp_path / "sources").write_text("\n".join(sources))
    libraries = ":".join(map(str, artifacts(JACKSON)))
    classes = str(tmp_path / "classes")
    run(["javac", "-nowarn", "-d", classes, "-cp", libraries, "@sources"], tmp_path)
    (api,) = generated.rglob("OperationsApi.java")
    assert "joinIsr(" in api.read_text()
    (entry,) = generated.rglob("JournalEntry.java")
    assert "Long getTimestampNs()" in entry.read_text()
    unions = [each for each in sources if "extends AbstractOpenApiSchema" in Path(each).read_text()]
    assert not unions
