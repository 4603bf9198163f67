"""The targets of docs/how-to/recipes/fuzzing read every seed of an exported corpus."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kproto.oracle.build import class_path
from kspec.clientfuzz.cli import fuzz
from tests.support.toolchain import absent, require

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs/how-to/recipes/fuzzing"
SECONDS = 480


def corpus(recipe: str, folder: Path, seeds: int = 200) -> list[Path]:
    """As the first lines of the recipe say it."""
    (line,) = re.findall(r"mockbroker fuzz (seeds .*)--out", (RECIPES / recipe).read_text())
    assert f"--mutated {seeds} " in line
    done = CliRunner().invoke(fuzz, [*line.split(), "--out", str(folder)])
    assert done.exit_code == 0, done.output
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert len(found) > seeds / 2
    return found


def run(command: list[str], folder: Path, *, fails: bool = False) -> str:
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode != 0) is fails, done.stdout
    return done.stdout


def all_were_taken(said: str, files: list[Path]) -> None:
    """libFuzzer's account, and Jazzer's, which is made of it. It tries no bytes at all first."""
    size = sum(path.stat().st_size for path in files)
    assert re.search(rf"seed corpus: files: {len(files)} .* total: {size}b ", said), said
    assert re.search(rf"^#{len(files) + 1}\s+INITED ", said, re.M), said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="clang's libFuzzer as on Linux")
def test_libfuzzer(tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        absent("clang", "apt-get install clang")
    files = corpus("frame_fuzzer.c", tmp_path / "corpus")
    build = ["clang", "-g", "-O1", "-fsanitize=fuzzer,address,undefined"]
    run([*build, str(RECIPES / "frame_fuzzer.c"), "-o", "fuzzer"], tmp_path)
    all_were_taken(run(["./fuzzer", "-runs=0", "corpus"], tmp_path), files)
    # What it chooses it calls by the same names.
    (tmp_path / "chosen").mkdir()
    run(["./fuzzer", "-merge=1", "chosen", "corpus"], tmp_path)
    chosen = {path.name for path in (tmp_path / "chosen").iterdir()}
    assert chosen
    assert chosen <= {path.name for path in files}
    run([*build, "-DTRUSTING", str(RECIPES / "frame_fuzzer.c"), "-o", "trusting"], tmp_path)
    said = run(["./trusting", "-runs=0", "corpus"], tmp_path, fails=True)
    assert "AddressSanitizer: heap-buffer-overflow" in said


@pytest.mark.go
def test_go(tmp_path: Path) -> None:
    require("go")
    for source in (RECIPES / "frame_fuzz_test.go", *(ROOT / "tests/kspec/vectors/go").glob("go.*")):
        shutil.copy(source, tmp_path)
    files = corpus("frame_fuzz_test.go", tmp_path / "testdata/fuzz")
    said = run(["go", "test", "-count=1", "-v"], tmp_path)
    assert set(re.findall(r"--- PASS: FuzzMetadataResponse/(\w+)", said)) == {
        path.name for path in files
    }
    said = run(["go", "test", "-fuzz", "FuzzMetadataResponse", "-fuzztime", "1000x"], tmp_path)
    # Go adds what earlier runs on this machine found of interest.
    (count,) = re.findall(r"gathering baseline coverage: (\d+)/\1 completed", said)
    assert int(count) >= len(files)


@pytest.mark.java
def test_jazzer(tmp_path: Path) -> None:
    require("java", "maven")
    files = corpus("FrameFuzzer.java", tmp_path / "corpus")
    (folder,) = (tmp_path / "corpus").iterdir()
    source = (RECIPES / "FrameFuzzer.java").read_text()
    (includes,) = re.findall(r"'(--instrumentation_includes=.*)'", source)
    command = [
        "java", "-Xmx512m", "-cp", class_path("4.4.0", RECIPES),
        "com.code_intelligence.jazzer.Jazzer", "--target_class=FrameFuzzer", includes,
        "-runs=0", str(folder),
    ]  # fmt: skip
    all_were_taken(run(command, tmp_path), files)
