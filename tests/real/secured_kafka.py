"""A real Kafka of one broker that asks who is calling: SASL, and StandardAuthorizer.

Clients of ``bootstrap`` authenticate by PLAIN or SCRAM; the broker's own listener is open, and
whoever comes by it is a super user.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

from tests.real.kafka import KafkaFailed, RealKafka, _accepts, properties_of
from tests.support.ports import free_ports

__all__ = [
    "MECHANISMS",
    "OAUTHBEARER",
    "REQUIRED_SCOPE",
    "SUPER_USER",
    "TOKEN_KEY",
    "USERS",
    "SecuredKafka",
    "password",
]

USERS: Final = ("admin", "alice", "bob", "carol", "dave")
SUPER_USER: Final = "User:admin"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
TOKEN_KEY: Final = "the key of delegation tokens"
REQUIRED_SCOPE: Final = ("kafka", "read")
"""What a token has to be good for."""


def password(user: str) -> str:
    """The same for every mechanism."""
    return f"{user}-secret"


_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required " + " ".join(
    f'user_{user}="{password(user)}"' for user in USERS
)
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_BEARER = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker"'
)
_LOGINS = {
    "plain": _PLAIN,
    "scram-sha-256": _SCRAM,
    "scram-sha-512": _SCRAM,
    "oauthbearer": f'{_BEARER} unsecuredValidatorRequiredScope="{" ".join(REQUIRED_SCOPE)}"',
}


class SecuredKafka(RealKafka):
    """As ``RealKafka`` of a KRaft release, with one broker alone."""

    def __init__(self, release: str, folder: Path) -> None:
        super().__init__(release, folder, zookeeper=False)
        (self.port,) = free_ports(1)

    @property
    def bootstrap(self) -> str:
        """Where clients authenticate."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        try:
            self._format()
            self._start_broker(1)
            self._wait(lambda: _accepts(self.port), "the broker")
        except BaseException:
            self.close()
            raise
        return self

    def _format(self) -> None:
        self._write(properties_of(1), self._kraft_configs(1))
        users = [
            argument
            for mechanism in MECHANISMS[1:]
            for user in USERS
            for argument in (
                "--add-scram", f"{mechanism}=[name={user},password={password(user)}]",
            )
        ]  # fmt: skip
        self._start(
            "format", "kafka.tools.StorageTool", "format", "--cluster-id", self._cluster_id,
            "--config", properties_of(1), "--standalone",
            "--feature", "eligible.leader.replicas.version=0", *users,
        )  # fmt: skip
        tool = self._processes.pop("format")
        if tool.wait(150.0) != 0:
            raise KafkaFailed(self._story("format", "could not format storage"))

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        configs = super()._kraft_configs(broker_id)
        logins = {
            f"listener.name.sasl_plaintext.{mechanism}.sasl.jaas.config": f"{login};"
            for mechanism, login in _LOGINS.items()
        }
        return {
            **configs,
            **logins,
            "listeners": f"{configs['listeners']},SASL_PLAINTEXT://127.0.0.1:{self.port}",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "delegation.token.secret.key": TOKEN_KEY,
            "sasl.enabled.mechanisms": ",".join((*MECHANISMS, OAUTHBEARER)),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"{SUPER_USER};User:ANONYMOUS",
            # A refused client is told at once, where Kafka would make it wait.
            "connection.failed.authentication.delay.ms": "0",
        }
