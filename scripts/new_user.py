"""Follow README.md as a new user does, and print each command with its output.

    .venv/bin/python -m scripts.new_user            # the newest wheel of dist/
    .venv/bin/python -m scripts.new_user FILE.whl

Everything happens in a virtual environment in a temporary folder, where the repository is not on
the path. After a plain install of the wheel, ``JOBS`` run: one real task of each command line. Then
the README's ``sh`` and ``console`` blocks run in order, and its ``python`` blocks: tests under
pytest, the others together as one program. ``pip install`` of a checkout takes the wheel. Commands
that need a checkout are listed and not run. Exits with 1 at the first command that fails.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from scripts.distributions import ROOT

__all__ = ["JOBS", "Walk", "WalkError", "main", "walk"]

SECONDS: Final = 300
SHOWN_LINES: Final = 12
NEED_CHECKOUT: Final = {"make", "git", "cd", "docker", ".ci/run"}
CHECKOUT: Final = re.compile(
    r"(?:\.|\./kproto|kproto)(?P<extras>\[[a-z,]+\])?(?P<url> *@ *git\+\S+)?|git\+\S+"
)
EXAMPLE_CONTROL: Final = re.compile(r"http://127\.0\.0\.1:\d+")
JOBS: Final = """\
pip install .
kproto --version
mockbroker --version
wiredump --version
kspec --version
kproto encode HeartbeatRequest 0 '{"groupId": "g", "generationId": 7, "memberId": "m"}'
mockbroker serve --topic foo:2:3 --control 127.0.0.1:0 --journal traffic.pcapng
kproto admin topics --describe --topic foo --bootstrap-server BOOTSTRAP
mockbroker ctl CONTROL leave-isr foo-0 3
wiredump show traffic.pcapng
kspec run --client kproto --case correlation/001-an-answer-under-another-id --out report
"""
"""CONTROL and BOOTSTRAP are the addresses of the cluster that is served."""


class WalkError(Exception):
    """A command of the README, or one of ``JOBS``, does not work for a new user."""


class Walk:
    """One environment in ``place``, and what runs in it."""

    def __init__(self, place: Path, wheel: Path) -> None:
        self._place = place
        self._wheel = wheel
        self._bin = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self._served: subprocess.Popen[str] | None = None
        self._addresses = {"BOOTSTRAP": "", "CONTROL": ""}
        self._tests = 0
        self._program = ""

    def create(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(self._place / "venv")], check=True)

    def page(self, text: str) -> None:
        """Follow the code blocks of a page of Markdown."""
        for language, block in re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", text, re.M | re.S):
            if language == "sh":
                self.lines(block.replace("\\\n", " "))
            elif language == "console":
                self.lines("\n".join(re.findall(r"^\$ (.*)$", block, re.M)))
            elif language == "python":
                self._block(block)
        # Later blocks use the names of earlier ones.
        self._python("program.py", self._program)

    def _block(self, block: str) -> None:
        """Run a block that has tests with fixtures; keep another one for the program."""
        if re.search(r"^(?:async )?def test_\w+\(\w", block, re.M):
            self._tests += 1
            self._python(f"test_readme_{self._tests}.py", block, "-m", "pytest", "-q")
        else:
            self._program += block

    def _python(self, name: str, text: str, *options: str) -> None:
        (self._place / name).write_text(text, encoding="utf-8")
        print(f"$ cat {name}\n{text}")
        self.run(["python", *options, name])

    def lines(self, text: str) -> None:
        """Run the lines of a shell."""
        for words in (shlex.split(line, comments=True) for line in text.splitlines()):
            if not words:
                continue
            if words[0] in NEED_CHECKOUT:
                print(f"$ {shlex.join(words)}\n(not run: needs a checkout)\n", flush=True)
            elif words[:2] == ["mockbroker", "serve"]:
                self.serve(words)
            else:
                self.run([self._argument(word) for word in words])

    def _argument(self, word: str) -> str:
        checkout = CHECKOUT.fullmatch(word)
        if checkout is not None and (checkout["url"] or not word.startswith("kproto")):
            return f"{self._wheel}{checkout['extras'] or ''}"
        if EXAMPLE_CONTROL.fullmatch(word):
            word = "CONTROL"
        return self._addresses.get(word, word)

    def run(self, words: list[str]) -> None:
        """Run a command and print its output. Raises WalkError if it fails."""
        command = shlex.join(words).replace(str(self._wheel), self._wheel.name)
        print(f"$ {command}", flush=True)
        began = time.monotonic()
        done = subprocess.run(
            self._resolved(words), cwd=self._place, env=self._environment(), timeout=SECONDS,
            text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode:
            raise WalkError(f"{done.stdout}exit code {done.returncode}: {command}")
        lines = done.stdout.splitlines()
        more = len(lines) - SHOWN_LINES
        print("\n".join(lines[:SHOWN_LINES] + [f"... {more} more lines"] * (more > 0)))
        print(f"[{time.monotonic() - began:.1f} s]\n", flush=True)

    def serve(self, words: list[str]) -> None:
        """Start a cluster and print its first line; the one before it ends."""
        self.stop()
        print(f"$ {shlex.join(words)} &", flush=True)
        self._served = subprocess.Popen(
            self._resolved(words), cwd=self._place, env=self._environment(), text=True,
            encoding="utf-8", stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._served.stdout is not None
        first = self._served.stdout.readline()
        if not first:
            raise WalkError(f"no output: {shlex.join(words)}")
        print(first, flush=True)
        ready = json.loads(first)
        self._addresses = {"BOOTSTRAP": ready["bootstrap"], "CONTROL": ready["control"] or ""}

    def stop(self) -> None:
        if self._served is not None:
            self._served.terminate()
            self._served.communicate(timeout=SECONDS)
            self._served = None

    def _resolved(self, words: list[str]) -> list[str]:
        """Windows looks for programs on the path of this process, not of the new one."""
        program = self._bin / f"{words[0]}{'.exe' if os.name == 'nt' else ''}"
        return [str(program) if program.exists() else words[0], *words[1:]]

    def _environment(self) -> dict[str, str]:
        dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "KPROTO_ENGINE", "PYTEST_ADDOPTS")
        return {
            **{name: value for name, value in os.environ.items() if name not in dropped},
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUTF8": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_QUIET": "1",
            # Stands for --no-compile: most files of the packages are never imported here.
            "PIP_NO_COMPILE": "0",
            "KPROTO_CACHE": str(self._place / "cache"),
        }


def walk(wheel: Path) -> None:
    """Raises WalkError at the first command that fails."""
    with tempfile.TemporaryDirectory(prefix="kproto-new-user-") as place:
        steps = Walk(Path(place), wheel.resolve())
        steps.create()
        try:
            steps.lines(JOBS)
            steps.page((ROOT / "README.md").read_text(encoding="utf-8"))
        finally:
            steps.stop()


def main() -> None:
    wheels = [Path(name) for name in sys.argv[1:]] or sorted(
        (ROOT / "dist").glob("kproto-*.whl"), key=lambda path: path.stat().st_mtime
    )
    if not wheels:
        sys.exit("new_user: dist/ has no wheel; run `python -m build --wheel` first")
    try:
        walk(wheels[-1])
    except WalkError as error:
        sys.exit(f"new_user: {error}")


if __name__ == "__main__":
    main()
