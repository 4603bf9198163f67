"""An install where no C compiler is: from the source distribution, and the quick tests on it.

    make test-without-compiler
    .venv/bin/python -m scripts.without_compiler tests/codegen -x
    KPROTO_QUICK=1 make test-without-compiler    # a sample of what is long, by KPROTO_SEED

The source distribution is built, unpacked in a temporary folder and set up as its reader would,
with ``scripts/bootstrap.py``, and compilers that do not exist. The set-up has to say in one line
that the native engine was skipped and how to get it, and so has ``kproto --version``. Then the
quick tests run there, on the engine that is used if nobody names one. What may be skipped tests
the native engine, or asks git for the repository's files; anything else skipped, and anything
that fails, ends this with exit 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent
SAID = "the native engine was not built; to build it, have a C compiler"
ABSENT = "no-such-compiler"
MAY_SKIP = ("native is absent:", "not a git checkout:")
QUICK = "not slow and not oracle and not java and not node and not go"


class Unexpected(Exception):
    """Not what an install without a compiler is to be; the text says what instead."""


def environment() -> dict[str, str]:
    """This one without a compiler, a choice of engine, or what only CI insists on."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("KPROTO_ENGINE", "KPROTO_REQUIRE", "PYTHONPATH")
    }
    return {**kept, "CC": ABSENT, "CXX": ABSENT, "KPROTO_PYTHON": sys.executable}


def unpacked(place: Path) -> Path:
    """The source distribution of this checkout, unpacked."""
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(place), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (archive,) = place.glob("kproto-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    return place / archive.name.removesuffix(".tar.gz")


def said_once(words: str, by: str) -> None:
    lines = [line for line in words.splitlines() if SAID in line]
    if len(lines) != 1:
        raise Unexpected(f"{by} does not say in one line that there is no native engine:\n{words}")
    print(lines[0], flush=True)


def set_up(checkout: Path) -> Path:
    """Its environment; returns the interpreter."""
    command = [sys.executable, "scripts/bootstrap.py"]
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
    """What was skipped, counted by reason, a line each. Raises Unexpected for any other reason than
    those that may be."""
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
        "-n", "auto", "--maxprocesses", "4", "--dist", "loadfile", f"--junit-xml={results}",
    ]  # fmt: skip
    if subprocess.call([*command, *arguments], cwd=checkout, env=environment()):
        raise Unexpected("the tests fail without a compiler")
    print("\n".join(judge(results)))


def main() -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="kproto-") as place:
            checkout = unpacked(Path(place))
            test(set_up(checkout), checkout, sys.argv[1:])
    except Unexpected as error:
        print(f"without_compiler: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
