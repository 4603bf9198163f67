"""What a listener's ``ssl.`` and ``sasl.`` configs make of its connections: a TLS context, and the
users that may authenticate. Reads the files of key stores and trust stores.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kproto.errors import MissingExtraError
from kproto.os_errors import os_error_text
from mockbroker.errors import ClusterError
from mockbroker.options.certificates import load_pem, pem_problem
from mockbroker.options.listener_configs import ListenerConfig, listener_prefix
from mockbroker.simulation.security.jaas import jaas_options
from mockbroker.simulation.security.oauthbearer import OAUTHBEARER
from mockbroker.simulation.security.sasl import MECHANISMS, PLAIN, SaslUsers

__all__ = ["listener_tls", "listener_users"]

_JKS: Final = b"\xfe\xed\xfe\xed"
_PEM: Final = b"-----BEGIN "
_KEY_STORE: Final = "ssl.keystore.location"
_TRUST_STORE: Final = "ssl.truststore.location"
_CHAIN: Final = "ssl.keystore.certificate.chain"
_KEY: Final = "ssl.keystore.key"
_KEY_PASSWORD: Final = "ssl.key.password"
_CERTIFICATES: Final = "ssl.truststore.certificates"
_CLIENT_AUTH: Final = "ssl.client.auth"
_VERSIONS: Final = "ssl.enabled.protocols"
_MECHANISMS: Final = "sasl.enabled.mechanisms"
_JAAS: Final = "sasl.jaas.config"
_USER: Final = "user_"
_VALIDATOR: Final = "unsecuredValidator"
_TLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


# ---- TLS -----------------------------------------------------------------------------------------


def listener_tls(listener: ListenerConfig, default: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """The server's context of a listener, None for one without TLS. ``default`` is used if the
    listener has no key store. Raises ListenerConfigError."""
    if not listener.encrypted:
        return None
    configs = listener.configs
    if _KEY_STORE not in configs and _CHAIN not in configs:
        if default is not None:
            return default
        raise listener.refuse(
            _KEY_STORE, f"listener {listener.name} speaks {listener.protocol} and needs a "
            f"certificate: set {_KEY_STORE} or {_CHAIN} and {_KEY}, or the option tls (--tls)",
        )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_key(listener, context)
    _restrict_versions(listener, context)
    mode = configs.get(_CLIENT_AUTH, "none").strip()
    # As in Kafka, a listener with SASL follows only a config of its own.
    if listener.authenticates and _CLIENT_AUTH not in listener.own:
        mode = "none"
    if mode not in _VERIFY:
        raise listener.refuse(
            _CLIENT_AUTH, f"Invalid value {mode} for configuration {_CLIENT_AUTH}: String must be "
            f"one of: {', '.join(reversed(_VERIFY))}",
        )  # fmt: skip
    if mode != "none":
        _trust(listener, context)
        context.verify_mode = _VERIFY[mode]
    return context


def _load_key(listener: ListenerConfig, context: ssl.SSLContext) -> None:
    configs = listener.configs
    password = configs.get(_KEY_PASSWORD, "")
    if _KEY_STORE not in configs:
        if _KEY not in configs:
            raise listener.refuse(_KEY, f"{_CHAIN} needs the private key; set {_KEY}")
        text = f"{configs[_CHAIN]}\n{configs[_KEY]}\n".encode()
        return _load_pem(listener, context, text, _CHAIN, password)
    data = _file(listener, _KEY_STORE)
    if _PEM in data:
        return _load_pem(listener, context, data, _KEY_STORE, password)
    key, certificates = _pkcs12(listener, _KEY_STORE, data)
    if not key:
        raise listener.refuse(_KEY_STORE, f"{configs[_KEY_STORE]} holds no private key")
    return _load_pem(listener, context, certificates + key, _KEY_STORE, "")


def _load_pem(
    listener: ListenerConfig, context: ssl.SSLContext, text: bytes, config: str, password: str
) -> None:
    try:
        load_pem(context, text, password=password)
    except (OSError, ValueError) as error:
        problem = pem_problem(error, key="beside it")
        raise listener.refuse(config, f"the key store cannot be used: {problem}") from None


def _trust(listener: ListenerConfig, context: ssl.SSLContext) -> None:
    configs, config = listener.configs, _CERTIFICATES
    if _TRUST_STORE in configs:
        config, data = _TRUST_STORE, _file(listener, _TRUST_STORE)
        text = data if _PEM in data else _pkcs12(listener, config, data)[1]
    elif _CERTIFICATES in configs:
        text = configs[_CERTIFICATES].encode()
    else:
        raise listener.refuse(
            _TRUST_STORE, f"{_CLIENT_AUTH} needs the authorities of clients; set {_TRUST_STORE} "
            f"or {_CERTIFICATES}",
        )  # fmt: skip
    try:
        context.load_verify_locations(cadata=text.decode("ascii", "replace"))
    except (OSError, ValueError) as error:
        problem = pem_problem(error, key="beside it")
        raise listener.refuse(config, f"the trust store cannot be used: {problem}") from None


def _restrict_versions(listener: ListenerConfig, context: ssl.SSLContext) -> None:
    text = listener.configs.get(_VERSIONS)
    if text is None:
        return
    named = [each.strip() for each in text.split(",")]
    versions = [_TLS[each] for each in named if each in _TLS]
    if not versions:
        raise listener.refuse(_VERSIONS, f"{text!r} has no version that OpenSSL offers; use one of "
                              f"{', '.join(_TLS)}")  # fmt: skip
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _file(listener: ListenerConfig, config: str) -> bytes:
    path = listener.configs[config]
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise listener.refuse(config, f"{path}: {os_error_text(error)}") from None
    if data.startswith(_JKS):
        raise listener.refuse(
            config, f"{path} has the format JKS; convert it: keytool -importkeystore -srckeystore "
            f"{path} -destkeystore {path}.p12 -deststoretype PKCS12",
        )  # fmt: skip
    return data


def _pkcs12(listener: ListenerConfig, config: str, data: bytes) -> tuple[bytes, bytes]:
    """The private key, if there is one, and the certificates of a store, as PEM."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise MissingExtraError(
            "stores of the format PKCS12 need cryptography (PEM needs nothing)", extra="oauth"
        ) from None
    password = listener.configs.get(config.replace("location", "password"))
    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password else None)
    except ValueError as error:
        raise listener.refuse(
            config, f"{listener.configs[config]} cannot be read as PKCS12: {error}"
        ) from None
    pem = serialization.Encoding.PEM
    held = [*([store.cert] if store.cert else []), *store.additional_certs]
    certificates = [each.certificate.public_bytes(pem) for each in held]
    key = b"" if store.key is None else store.key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip
    return key, b"".join(certificates)


# ---- SASL ----------------------------------------------------------------------------------------


def listener_users(listener: ListenerConfig, users: SaslUsers) -> SaslUsers | None:
    """The users of a listener, None for one without SASL: those of the cluster, and those of its
    ``sasl.jaas.config``. Raises ListenerConfigError."""
    if not listener.authenticates:
        return None
    known = (*MECHANISMS, OAUTHBEARER)
    enabled = listener.configs.get(_MECHANISMS, "GSSAPI")
    mechanisms = [each for part in enabled.split(",") if (each := part.strip())]
    unknown = [each for each in mechanisms if each not in known]
    if unknown or not mechanisms:
        raise listener.refuse(
            _MECHANISMS, f"{enabled!r} (the default is GSSAPI, which needs Kerberos): a mock "
            f"cluster has {', '.join(known)}",
        )  # fmt: skip
    own = [_own_user(listener, mechanism) for mechanism in mechanisms]
    found = users.of_listener(mechanisms, [each for texts in own for each in texts])
    if PLAIN in mechanisms and not found.has_users(PLAIN):
        prefix = listener_prefix(listener.name)
        raise listener.refuse(
            f"plain.{_JAAS}", f"listener {listener.name} has no users for PLAIN; set "
            f"{prefix}plain.{_JAAS}=org.apache.kafka.common.security.plain.PlainLoginModule "
            'required user_alice="secret"; or give the option sasl (--sasl PLAIN:alice:secret)',
        )  # fmt: skip
    return found


def _own_user(listener: ListenerConfig, mechanism: str) -> Iterable[str]:
    """The users of a mechanism in the listener's JAAS config, as ``SaslUsers`` takes them."""
    config = f"{mechanism.lower()}.{_JAAS}"
    text = listener.configs.get(config)
    if text is None:
        return
    try:
        options = jaas_options(text)
    except ClusterError as error:
        raise listener.refuse(config, str(error)) from None
    if mechanism == PLAIN:
        for name, value in options.items():
            if name.startswith(_USER):
                yield f"{PLAIN}:{name.removeprefix(_USER)}:{value}"
    if mechanism == OAUTHBEARER:
        given = [
            f"{option[0].lower()}{option[1:]}={value}"
            for name, value in options.items()
            if name.startswith(_VALIDATOR) and (option := name.removeprefix(_VALIDATOR))
        ]
        if given:
            yield f"{OAUTHBEARER}:{','.join(given)}"
