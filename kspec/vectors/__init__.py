"""Test vectors of the Kafka wire format for every language: bytes that a decoder has to take, with
what they mean, and bytes that it has to refuse.

``vectors`` makes them, always the same ones, out of the schemas. ``lines`` has the file format.
docs/vectors.md is for those who read the file.
"""

from __future__ import annotations

from kspec.vectors.generator import vectors
from kspec.vectors.lines import FORMAT_VERSION, file_lines
from kspec.vectors.model import Vector, Verdict

__all__ = ["FORMAT_VERSION", "Vector", "Verdict", "file_lines", "vectors"]
