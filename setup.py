"""What pyproject.toml cannot say: the repository's ``schemas/`` travels as ``kproto/_schemas``, and
the C engine is built where it can be. Without a compiler the install goes on without it, and what
runs then is the same, in Python; with KPROTO_ENGINE=native in the environment it fails instead."""

import os
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup

SCHEMAS = "kproto._schemas"
folders = sorted(path for path in Path("schemas").rglob("*") if path.is_dir())
schema_packages = [
    SCHEMAS,
    *(".".join((SCHEMAS, *folder.relative_to("schemas").parts)) for folder in folders),
]

engine = Path("kproto", "native")
flags = [] if os.name == "nt" else ["-O3", "-fvisibility=hidden", "-fno-strict-aliasing"]
if sys.platform.startswith("linux"):
    flags.append("-fno-plt")  # most calls go to the interpreter: straight there
native = Extension(
    "kproto.native._engine",
    sources=sorted(str(path) for path in engine.glob("*.c")),
    depends=sorted(str(path) for path in engine.glob("*.h")),
    # KPROTO_CFLAGS comes last: sanitizers, warnings.
    extra_compile_args=[*flags, *os.environ.get("KPROTO_CFLAGS", "").split()],
    optional=os.environ.get("KPROTO_ENGINE") != "native",
)

setup(
    ext_modules=[native],
    packages=[
        *find_packages(include=["kproto*", "mockbroker*", "wiredump*", "kspec*"]),
        *schema_packages,
    ],
    package_dir={SCHEMAS: "schemas"},
    include_package_data=False,  # what the sdist has beside them, C sources for one, is not listed
    package_data={
        **{package: ["*.json", "*.md"] for package in schema_packages},
        "kproto": ["py.typed"],
        "kproto.native": ["*.pyi"],
        "mockbroker": ["py.typed", "profiles/*.json"],
        # The adapters' sources are built where they run; cases, and what was found, are data.
        "kspec": ["py.typed", "cases/*/*.yaml", "findings.yaml"],
        "kspec.adapters": [
            *("node/*", "java/*", "go/go.*", "go/*/*.go"),
            *("rust/*.toml", "rust/src/*.rs"),
        ],
    },
)
