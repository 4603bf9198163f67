"""What pyproject.toml cannot say: the repository's ``schemas/`` travels as ``kproto/_schemas``."""

from pathlib import Path

from setuptools import find_packages, setup

SCHEMAS = "kproto._schemas"
folders = sorted(path for path in Path("schemas").rglob("*") if path.is_dir())
schema_packages = [
    SCHEMAS,
    *(".".join((SCHEMAS, *folder.relative_to("schemas").parts)) for folder in folders),
]

setup(
    packages=[
        *find_packages(include=["kproto*", "mockbroker*", "wiredump*", "kspec*"]),
        *schema_packages,
    ],
    package_dir={SCHEMAS: "schemas"},
    package_data={
        **{package: ["*.json", "*.md"] for package in schema_packages},
        "kproto": ["py.typed"],
        "mockbroker": ["py.typed", "profiles/*.json"],
    },
)
