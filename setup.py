"""What pyproject.toml cannot say: the repository's ``schemas/`` travels as ``kproto/_schemas``."""

from setuptools import find_packages, setup

SCHEMAS = "kproto._schemas"

setup(
    packages=[
        *find_packages(include=["kproto*", "mockbroker*", "wiredump*", "kspec*"]),
        SCHEMAS,
    ],
    package_dir={SCHEMAS: "schemas"},
    package_data={
        SCHEMAS: ["*.json", "*/*.json"],
        "kproto": ["py.typed"],
        "mockbroker": ["py.typed", "profiles/*.json"],
    },
)
