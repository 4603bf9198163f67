from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CHUNKS = """
import resource
from wiredump.readers.allocator import keep_chunks
if {keep}: keep_chunks()
def read():
    first = bytearray(1 << 20)
    return first + b"and what the last one left"
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for number in range(100): read()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what glibc does with what is freed")
def test_chunks_come_from_where_chunks_were():
    def faults(keep: bool) -> int:
        program = [sys.executable, "-c", CHUNKS.format(keep=keep)]
        return int(subprocess.run(program, capture_output=True, check=True, timeout=60).stdout)

    assert faults(keep=True) < faults(keep=False) / 4
