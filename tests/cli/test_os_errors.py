"""The text of an OSError: a place and a reason, without the system's number."""

import asyncio
import socket
from pathlib import Path

import pytest

from kproto.os_errors import os_error_text


def test_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        (tmp_path / "none").read_bytes()
    assert os_error_text(missing.value) == f"{tmp_path / 'none'}: No such file or directory"


async def test_an_address_is_named() -> None:
    with socket.socket() as bound:  # it does not listen
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(ConnectionRefusedError) as refused:
            await asyncio.open_connection("127.0.0.1", port)
    assert os_error_text(refused.value) == f"127.0.0.1:{port}: Connection refused"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError("in words"), "in words"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (FileNotFoundError(2, "No such file", b"name"), "name: No such file"),
        (OSError("Multiple exceptions: [Errno 111] a, [Errno -2] b"), "Multiple exceptions: a, b"),
    ],
)
def test_the_number_is_left_out(error: OSError, text: str) -> None:
    assert os_error_text(error) == text
