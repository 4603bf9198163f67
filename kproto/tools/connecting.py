"""Make an ``Access`` from a bootstrap address and a properties file.

``properties`` interprets the settings; this module reads PEM files and makes the TLS context.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from kproto.dialects import Dialect
from kproto.tools.access import Access
from kproto.tools.errors import ToolError, ToolUsageError
from kproto.tools.properties import Settings, Tls, parse_properties, settings

__all__ = ["connect", "read_settings", "read_text"]

_TIMEOUT_MS: Final = 60_000


def read_text(path: str) -> str:
    """Read a file that the command line names. Raises ToolError with its path."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        message = f"{path}: {why}"
        raise ToolError(message, printed=f"Error: {message}") from None


def read_settings(path: str | None) -> Settings:
    """Read the settings of a properties file; without a file, use the tool's defaults."""
    return Settings() if path is None else settings(parse_properties(read_text(path), path), path)


def connect(
    bootstrap: str,
    found: Settings,
    *,
    client_id: str,
    timeout_ms: int = _TIMEOUT_MS,
    controllers: bool = False,
    dialect: str | Dialect = "kafka",
) -> Access:
    """Return a client that has sent nothing yet; use it in ``async with``.

    ``controllers``: the addresses are those of a KRaft quorum's controllers instead of brokers.
    ``dialect`` is the brokers' dialect. ``client_id`` and ``timeout_ms`` are the tool's defaults,
    which ``found`` overrides. Raises ToolUsageError for an invalid address, and ToolError for
    certificates that cannot be used.
    """
    context = None if found.tls is None else _context(found.tls)
    try:
        return Access(
            bootstrap,
            client_id=found.client_id or client_id,
            default_timeout_ms=timeout_ms if found.timeout_ms is None else found.timeout_ms,
            ssl=context,
            sasl=found.sasl,
            controllers=controllers,
            dialect=dialect,
        )
    except ValueError as error:
        raise ToolUsageError(str(error)) from None


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.trusted_path, cadata=tls.trusted_text)
        context.check_hostname = tls.check_hostname
        if tls.key_path is not None:
            # "" rather than None, with which OpenSSL would prompt for a password on the terminal.
            context.load_cert_chain(tls.key_path, password=tls.key_password or "")
    except OSError as error:
        message = f"TLS: the certificates of the properties file cannot be used: {error}"
        raise ToolError(message, printed=f"Error: {message}") from None
    return context
