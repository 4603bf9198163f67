"""``kproto.error_codes`` against Kafka's own table."""

import subprocess
from pathlib import Path

import pytest

from kproto import error_codes
from kproto.error_codes import ErrorCode
from tests.support.toolchain import require


@pytest.mark.java
@pytest.mark.oracle
def test_codes_names_texts_and_retriability_are_kafkas() -> None:
    require("java", "maven")
    from kproto.oracle.build import class_path
    from kproto.oracle.oracle import RELEASES

    program = Path(__file__).with_name("ErrorCodes.java")
    run = subprocess.run(
        ["java", "-cp", class_path(RELEASES[-1]), str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    rows = [line.split("\t") for line in run.stdout.splitlines()]
    theirs = [(int(code), name, retriable == "true", text) for code, name, retriable, text in rows]
    ours = [
        (int(code), code.name, error_codes.is_retriable(code), error_codes.message(code))
        for code in sorted(ErrorCode)
    ]
    assert ours == theirs
