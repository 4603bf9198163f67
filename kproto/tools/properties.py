"""``--command-config``: parse Java properties files and turn them into settings of our client.
Pure.

Supported are TLS with PEM files, SASL PLAIN and SCRAM, client id and time-outs. Any other ``ssl.``,
``sasl.`` or ``security.`` setting is an error, since a client that is less secure than its file
says is worse than none. Other settings have no effect and are ignored, as Kafka's tools ignore
unknown names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from kproto.client.sasl import SCRAM_MECHANISMS, SaslMechanism, SaslPlain, SaslScram
from kproto.tools.errors import ToolError

__all__ = ["Settings", "Tls", "parse_properties", "settings"]

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SECURITY: Final = ("ssl.", "sasl.", "security.")


class Tls(msgspec.Struct, frozen=True):
    """Paths or contents of PEM files. None means the system's certificates, and no key."""

    trusted_path: str | None = None
    trusted_text: str | None = None
    key_path: str | None = None
    key_password: str | None = None
    check_hostname: bool = True


class Settings(msgspec.Struct, frozen=True):
    """The settings of one properties file; None for those it does not contain."""

    client_id: str | None = None
    timeout_ms: int | None = None
    tls: Tls | None = None
    sasl: SaslMechanism | None = None


def parse_properties(text: str, source: str = "the properties") -> dict[str, str]:
    """Parse Java's properties format. The last value of a key counts. Raises ToolError with
    ``source`` for an invalid ``\\u`` escape, as Java does."""
    import javaproperties  # here, because most commands read no properties

    try:
        return javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError as error:
        message = f"{source}: invalid escape {error.escape}"
        raise ToolError(message, printed=f"Error: {message}") from None


def settings(properties: Mapping[str, str], source: str = "the properties") -> Settings:
    """Return the client's settings. Raises ToolError with ``source`` and the setting."""
    left = {name: value.strip() for name, value in properties.items()}
    protocol = left.pop("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise _refused(source, "security.protocol", f"must be one of {', '.join(_PROTOCOLS)}")
    # Parsed in any case: a file may contain settings that its protocol does not use.
    tls = _tls(left, source)
    sasl = _sasl(left, source, wanted=protocol.startswith("SASL"))
    timeout = _integer(left, "default.api.timeout.ms", source)
    for name in left:
        if name.startswith(_SECURITY):
            raise _refused(source, name, "is not supported; remove it if it is not needed")
    return Settings(
        client_id=left.get("client.id"),
        timeout_ms=timeout,
        tls=tls if protocol.endswith("SSL") else None,
        sasl=sasl,
    )


def _tls(left: dict[str, str], source: str) -> Tls:
    trusted_path, trusted_text = (
        left.pop("ssl.truststore.location", None),
        left.pop("ssl.truststore.certificates", None),
    )
    key_path = left.pop("ssl.keystore.location", None)
    for name, used in (("ssl.truststore.type", trusted_path), ("ssl.keystore.type", key_path)):
        kind = left.pop(name, "PEM" if used is None else "JKS").upper()
        if kind != "PEM":
            raise _refused(source, name, f"must be PEM; {kind} stores cannot be read here")
    algorithm = left.pop("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("", "https"):
        raise _refused(source, "ssl.endpoint.identification.algorithm", 'must be "https" or empty')
    return Tls(
        trusted_path=trusted_path,
        trusted_text=trusted_text,
        key_path=key_path,
        key_password=left.pop("ssl.key.password", None),
        check_hostname=algorithm == "https",
    )


_JAAS: Final = re.compile(
    r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*);\s*$", re.DOTALL
)
_JAAS_OPTION: Final = re.compile(r'([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|(\S+))')


def _sasl(left: dict[str, str], source: str, *, wanted: bool) -> SaslMechanism | None:
    mechanism = left.pop("sasl.mechanism", "GSSAPI")
    jaas = left.pop("sasl.jaas.config", None)
    if not wanted:
        return None
    if mechanism != "PLAIN" and mechanism not in SCRAM_MECHANISMS:
        known = ", ".join(("PLAIN", *SCRAM_MECHANISMS))
        raise _refused(source, "sasl.mechanism", f"must be one of {known} here, not {mechanism}")
    if jaas is None:
        raise _refused(source, "sasl.jaas.config", "is missing; it contains the user and password")
    match = _JAAS.match(jaas)
    module = "PlainLoginModule" if mechanism == "PLAIN" else "ScramLoginModule"
    if match is None or not match[1].endswith(f".{module}"):
        raise _refused(
            source, "sasl.jaas.config", f'reads ...{module} required username="" password="";'
        )
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for name, quoted, bare in _JAAS_OPTION.findall(match[3])
    }
    if not {"username", "password"} <= options.keys():
        raise _refused(source, "sasl.jaas.config", "needs a username and a password")
    user, password = options["username"], options["password"]
    if mechanism == "PLAIN":
        return SaslPlain(user, password)
    try:
        return SaslScram(mechanism, user, password)
    except ImportError as error:
        raise _refused(source, "sasl.mechanism", str(error)) from None


def _integer(left: dict[str, str], name: str, source: str) -> int | None:
    text = left.pop(name, None)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise _refused(source, name, f"must be a number of milliseconds, not {text}")
    return int(text)


def _refused(source: str, name: str, why: str) -> ToolError:
    message = f"{source}: {name} {why}"
    return ToolError(message, printed=f"Error: {message}")
