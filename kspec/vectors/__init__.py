"""Test vectors of the Kafka wire format for every language: valid bytes with their values, and
invalid bytes.

``generator`` derives them from the schemas and always produces the same ones. ``lines`` has the
file format. docs/reference/vectors.md is for readers of the file.
"""

from __future__ import annotations

from kspec.vectors.generator import vectors
from kspec.vectors.lines import FORMAT_VERSION, file_lines
from kspec.vectors.vector import Vector, Verdict

__all__ = ["FORMAT_VERSION", "Vector", "Verdict", "file_lines", "vectors"]
