"""What pyproject.toml cannot say: the repository's ``schemas/`` travels as ``kproto/_schemas``."""

from pathlib import Path

from setuptools import find_packages, setup

SCHEMAS = "kproto._schemas"
folders = [path.name for path in sorted(Path("schemas").iterdir()) if path.is_dir()]
schema_packages = [SCHEMAS, *(f"{SCHEMAS}.{folder}" for folder in folders)]

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
