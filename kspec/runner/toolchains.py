"""Detect language toolchains. Standard library only, as it runs before any installation.

Knows the commands, how to get their versions, and how to install missing ones. Callers decide: the
bootstrap prints the list, tests skip or fail, and the demo leaves languages out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from typing import NamedTuple

__all__ = ["TOOLCHAINS", "Toolchain", "find", "missing", "report"]


class Toolchain(NamedTuple):
    """A command that must run, what needs it, and where to get it."""

    command: str
    version_arguments: list[str]
    purpose: str
    remedy: str


TOOLCHAINS: dict[str, Toolchain] = {
    "java": Toolchain(
        "javac",
        ["-version"],
        "Kafka's own classes as oracle, and the client kafka-clients",
        "install a JDK, 17 or newer (Debian: default-jdk-headless)",
    ),
    "maven": Toolchain(
        "mvn", ["--version"], "fetching Kafka's jars", "install Maven (Debian: maven)"
    ),
    "node": Toolchain(
        "node",
        ["--version"],
        "the clients in Node",
        "install Node.js, 20.19 or newer (Debian 13: nodejs; or nodejs.org)",
    ),
    "npm": Toolchain("npm", ["--version"], "fetching those clients", "install npm (Debian: npm)"),
    "go": Toolchain(
        "go",
        ["version"],
        "the clients in Go",
        # From 1.21 on, go fetches the newer toolchain that a go.mod asks for.
        "install Go, 1.21 or newer (Debian 13: golang-go; or go.dev/dl)",
    ),
    "gcc": Toolchain(
        "gcc",
        ["--version"],
        "the clients librdkafka and confluent-kafka-go, which link a C library",
        "install GCC (Debian: gcc)",
    ),
    "make": Toolchain(
        "make", ["--version"], "the client librdkafka", "install Make (Debian: make)"
    ),
    "rust": Toolchain(
        "cargo",
        ["--version"],
        "the crate kafka-protocol in the benchmarks, and the clients rskafka and rdkafka",
        "install Rust with Cargo, 1.85 or newer (Debian 13: cargo)",
    ),
    "kcat": Toolchain(
        "kcat", ["-V"], "kcat as a client of the conformance suite", "install kcat (Debian: kcat)"
    ),
    "tshark": Toolchain(
        "tshark",
        ["--version"],
        "comparing what wiredump reads with what Wireshark does",
        "install Wireshark's tshark (Debian: tshark)",
    ),
    "chromium": Toolchain(
        "chromium",
        ["--version"],
        "looking at our web pages in a browser",
        "install Chromium (Debian: chromium)",
    ),
}


@lru_cache(maxsize=None)
def find(name: str) -> str | None:
    """Return the first line of the toolchain's version text, or None if it is absent or broken."""
    tool = TOOLCHAINS[name]
    path = shutil.which(tool.command)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *tool.version_arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=240,  # a machine with other work is slow, not without it
            check=True,
            text=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # Maven always writes its name in bold. tshark warns root before anything else, and so may the
    # shell script that starts Debian's chromium.
    text = re.sub("\x1b\\[[0-9;]*m", "", done.stdout).strip()
    asides = ("Running as user", path + ":")
    lines = [line for line in text.splitlines() if not line.startswith(asides)]
    return lines[0] if lines else "version unknown"


def missing(names: list[str]) -> list[str]:
    """Return a sentence, with installation steps, for each of ``names`` that this machine lacks."""
    return [f"{name} is absent: {TOOLCHAINS[name].remedy}" for name in names if find(name) is None]


def report() -> list[str]:
    """Return one line per toolchain, present or absent."""
    lines = []
    for name, tool in TOOLCHAINS.items():
        version = find(name)
        lines.append(
            f"  {name:6} {version}"
            if version
            else f"  {name:6} absent; needed for {tool.purpose}: {tool.remedy}"
        )
    return lines
