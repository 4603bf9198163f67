"""Load certificates and private keys from texts, and explain why they cannot be used."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from kproto.os_errors import os_error_text

__all__ = ["load_pem", "pem_problem"]


def load_pem(context: ssl.SSLContext, pem: bytes, *, password: str = "") -> None:
    """Load a certificate chain and its private key. Raises OSError or ValueError.

    With the empty password OpenSSL refuses an encrypted key; without one it prompts for it.
    """
    # OpenSSL reads private keys from files alone; only this process can read the folder.
    with tempfile.TemporaryDirectory(prefix="mockbroker-") as folder:
        file = Path(folder, "server.pem")
        file.write_bytes(pem)
        context.load_cert_chain(file, password=password)


def pem_problem(error: OSError | ValueError, *, key: str) -> str:
    """Explain in one line why OpenSSL refuses a certificate or a key. ``key`` says where the
    private key belongs."""
    if isinstance(error, ssl.SSLError):
        return (
            f"it must be PEM: a certificate chain, and for a server its private key {key} "
            f"({error.reason or error.strerror})"
        )
    return os_error_text(error) if isinstance(error, OSError) else str(error)
