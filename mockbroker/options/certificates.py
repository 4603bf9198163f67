"""Explain why a certificate or a private key cannot be used. Opens no files."""

from __future__ import annotations

import ssl

from kproto.os_errors import os_error_text

__all__ = ["pem_problem"]


def pem_problem(error: OSError | ValueError, *, key: str) -> str:
    """Explain in one line why OpenSSL refuses a certificate or a key. ``key`` says where the
    private key belongs."""
    if isinstance(error, ssl.SSLError):
        return (
            f"it must be PEM: a certificate chain, and for a server its private key {key} "
            f"({error.reason or error.strerror})"
        )
    return os_error_text(error) if isinstance(error, OSError) else str(error)
