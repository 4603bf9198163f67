"""What pyproject.toml cannot express: the repository's ``schemas/`` is packaged as
``kproto/_schemas`` and its ``docs/`` as ``kproto/_docs``, and the C extensions are built if
possible. Without a compiler the installation continues without them, and Python does the same work.
With KPROTO_ENGINE=native in the environment it fails instead."""

import os
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup

SCHEMAS = "kproto._schemas"
DOCS = "kproto._docs"
folders = sorted(path for path in Path("schemas").rglob("*") if path.is_dir())
schema_packages = [
    SCHEMAS,
    *(".".join((SCHEMAS, *folder.relative_to("schemas").parts)) for folder in folders),
]

flags = [] if os.name == "nt" else ["-O3", "-fvisibility=hidden", "-fno-strict-aliasing"]
if sys.platform.startswith("linux"):
    flags.append("-fno-plt")  # most calls go to the interpreter; this makes them direct


def extension(name: str) -> Extension:
    """Return the extension made of all C sources in a module's folder."""
    folder = Path(*name.split(".")[:-1])
    return Extension(
        name,
        sources=sorted(str(path) for path in folder.glob("*.c")),
        depends=sorted(str(path) for path in folder.glob("*.h")),
        # KPROTO_CFLAGS comes last, for sanitizers and warnings.
        extra_compile_args=[*flags, *os.environ.get("KPROTO_CFLAGS", "").split()],
        optional=os.environ.get("KPROTO_ENGINE") != "native",
    )


setup(
    # The codecs' engine, and wiredump's fast reader of captures.
    ext_modules=[extension("kproto.native._engine"), extension("wiredump.native._quick")],
    packages=[
        *find_packages(include=["kproto*", "mockbroker*", "wiredump*", "kspec*"]),
        *schema_packages,
        DOCS,
    ],
    package_dir={SCHEMAS: "schemas", DOCS: "docs"},
    include_package_data=False,  # the sdist contains further files, such as C sources
    package_data={
        **{package: ["*.json", "*.md"] for package in schema_packages},
        DOCS: ["*/*.md"],  # for the command `help`
        "kproto": ["py.typed"],
        "kproto.pages": ["templates/*"],
        "kproto.native": ["*.pyi"],
        "kproto.wireshark": ["*.lua"],
        "wiredump": ["py.typed"],
        "wiredump.native": ["*.pyi"],
        "wiredump.questions": ["queries/*.sql"],
        "wiredump.report": ["templates/*"],
        "wiredump.spark": ["log4j2.properties"],
        "mockbroker": ["py.typed", "profiles/*.json"],
        "mockbroker.running": ["*.pyi"],
        "mockbroker.simulation.operations": ["*.pyi"],
        "mockbroker.control": ["templates/**/*.html", "web/*.*", "web/panels/*"],
        # The adapters' sources are built where they run; cases and findings are data.
        "kspec": ["py.typed", "cases/*/*.yaml", "findings.yaml"],
        "kspec.report": ["templates/*"],
        "kproto.oracle": ["*.json", "*/*.java", "*/*.xml"],
        "kspec.clientfuzz.decoders": ["*.yaml"],
        "kspec.clientfuzz.brokers": ["*.yaml"],
        "kspec.clientfuzz": ["findings/*.json"],
        "kspec.adapters": [
            *("node/*", "java/*", "go/go.*", "go/*/*.go"),
            *("rust/*/*.toml", "rust/*/src/*.rs", "c/*"),
        ],
    },
)
