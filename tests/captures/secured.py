"""The secured Kafka of ``tests.real`` with one more listener, which speaks TLS and lets all in."""

import subprocess
from pathlib import Path
from typing import Final

from tests.real.secured_kafka import SecuredKafka
from tests.support.ports import free_ports

__all__ = ["OpenToAll", "keystore_configs"]

_STORE: Final = "throw-away"


def keystore_configs(folder: Path) -> dict[str, str]:
    """Return the broker configs of a keystore in this folder, which is made at first. Nobody can
    check its certificate."""
    store = folder / "tls.p12"
    if not store.exists():
        subprocess.run(
            [
                "keytool", "-genkeypair", "-alias", "broker", "-keyalg", "EC",
                "-dname", "CN=localhost", "-storetype", "PKCS12", "-storepass", _STORE,
                "-keystore", str(store),
            ],
            check=True,
            capture_output=True,
        )  # fmt: skip
    return {
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": _STORE,
        "ssl.keystore.type": "PKCS12",
    }


class OpenToAll(SecuredKafka):
    """``tls_port`` is served by a certificate made for this run, which nobody can check."""

    def __init__(self, release: str, folder: Path) -> None:
        super().__init__(release, folder)
        (self.tls_port,) = free_ports(1)

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        configs = super()._kraft_configs(broker_id)
        protocols = configs["listener.security.protocol.map"]
        return {
            **configs,
            "listeners": f"{configs['listeners']},SSL://127.0.0.1:{self.tls_port}",
            "listener.security.protocol.map": f"{protocols},SSL:SSL",
            **keystore_configs(self._folder),
        }
