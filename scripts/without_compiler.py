"""Install the source distribution where no C compiler is, and run the codec's tests there.

    make test-without-compiler
    .venv/bin/python -m scripts.without_compiler tests/codegen -x

The source distribution is built, unpacked into a temporary folder and installed as a user would,
with ``scripts/bootstrap.py`` and compilers that do not exist. The set-up and ``kproto --version``
must each say in one line that the native engine was skipped and how to get it. Then the quick tests
of everything that encodes or decodes run there, on the engine that is the default. A skipped test
is accepted only if it tests the native engine or needs a git checkout. Exits with 1 for any other
skipped test and for a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from scripts.distributions import BadDistributionError, build, unpack

__all__ = ["main"]

SAID = "the native engine was not built; to build it, install a C compiler"
ABSENT = "no-such-compiler"
MAY_SKIP = ("native is absent:", "not a git checkout:")
QUICK = "not slow and not oracle and not java and not node and not go"
TESTS = [
    *(f"tests/{name}" for name in (
        "annotate", "capture", "cli", "client", "columns", "connection", "dialects", "framing",
        "hexview", "journal", "messages", "native", "partial", "reference", "znodes",
    )),
    "tests/mockbroker/apis", "tests/mockbroker/serving", "tests/mockbroker/running",
    "tests/wiredump/rows", "tests/wiredump/test_bodies.py", "tests/wiredump/test_conversation.py",
]  # fmt: skip
"""Tests of what depends on the engine. tests/codegen and tests/records run on both engines anyway;
everything else behaves the same on either."""


class Unexpected(Exception):
    """The install without a compiler differs from what it should be; the text says how."""


def environment() -> dict[str, str]:
    """The environment without a compiler, a chosen engine, or the toolchains that CI requires."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("KPROTO_ENGINE", "KPROTO_REQUIRE", "PYTHONPATH")
    }
    ours = {"CC": ABSENT, "CXX": ABSENT, "KPROTO_PYTHON": sys.executable}
    return {**kept, **ours}


def said_once(words: str, by: str) -> None:
    """Print the line about the native engine. Raises Unexpected unless there is exactly one."""
    lines = [line for line in words.splitlines() if SAID in line]
    if len(lines) != 1:
        raise Unexpected(f"{by} does not say in one line that there is no native engine:\n{words}")
    print(lines[0], flush=True)


def set_up(checkout: Path) -> Path:
    """Create the environment of ``checkout``; returns its interpreter."""
    # The other packages are wheels, which no compiler makes: they are those of this environment.
    command = [sys.executable, "scripts/bootstrap.py", "--packages-of", sys.executable]
    done = subprocess.run(
        command, cwd=checkout, env=environment(), stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise Unexpected(f"the set-up failed:\n{done.stderr}")
    said_once(done.stderr, "the set-up")
    python = checkout / ".venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    version = [str(python), "-m", "kproto", "--version"]
    said_once(
        subprocess.check_output(version, cwd=checkout, env=environment(), text=True),
        "kproto --version",
    )
    return python


def judge(results: Path) -> list[str]:
    """Count skipped tests by reason, a line each. Raises Unexpected for a reason not accepted."""
    reasons = Counter(
        item.get("message") or "" for item in ElementTree.parse(results).iter("skipped")
    )
    gaps = [reason for reason in reasons if not reason.startswith(MAY_SKIP)]
    if gaps:
        raise Unexpected(f"skipped, and not for the lack of a compiler or git: {gaps}")
    return [f"{count} skipped: {reason}" for reason, count in reasons.items()]


def test(python: Path, checkout: Path, arguments: list[str]) -> None:
    results = checkout.parent / "results.xml"
    command = [
        str(python), "-m", "pytest", "-q", "-m", QUICK, "--no-header", "-r", "fE",
        "-n", "auto", "--maxprocesses", "4", "--dist", "worksteal", f"--junit-xml={results}",
    ]  # fmt: skip
    if subprocess.call([*command, *(arguments or TESTS)], cwd=checkout, env=environment()):
        raise Unexpected("the tests fail without a compiler")
    print("\n".join(judge(results)))


def main() -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="kproto-") as place:
            (archive,) = build(Path(place), "--sdist")
            checkout = unpack(archive, Path(place))
            test(set_up(checkout), checkout, sys.argv[1:])
    except (Unexpected, BadDistributionError) as error:
        print(f"without_compiler: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
