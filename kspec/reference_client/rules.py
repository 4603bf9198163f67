"""The rules that a client follows, each in a method of its own.

The client finds the controller, retries with growing pauses where that can help, and times out. A
defect overrides one of these methods or provides another ``link``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from kproto import error_codes
from kproto.client.sasl import SaslMechanism, SaslPlain
from kproto.dialects import dialect
from kproto.errors import UnsupportedVersionError
from kspec.reference_client.bearer import Bearer
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.scram import Scram

__all__ = ["ClientRules", "Outcomes", "outcome"]

Outcomes = Mapping[str, tuple[int, str | None]]
"""Error code and message of each partition or topic."""

_NOT_CONTROLLER: Final = 41
_REBOOTSTRAP_REQUIRED: Final = 129
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


def outcome(code: int, message: str | None) -> dict[str, Any]:
    """Return an error in the form of the adapter protocol."""
    return {
        "error": error_codes.name(code),
        "code": code,
        "message": message or error_codes.message(code),
    }


class ClientRules:
    """A client without the adapter protocol, for the calls of ``calls``."""

    link: type[Link] = Link
    scram: type[Scram] = Scram
    bearer: type[Bearer] = Bearer
    least_attempts: ClassVar[int] = 0
    """Minimum number of attempts, even after the timeout. For defects that retry too often,
    which must do so on a slow machine too."""

    def __init__(self) -> None:
        self.codec = dialect("kafka")
        self.timeout = 2.0
        self.links: dict[tuple[str, int], Link] = {}
        self.bootstrap: list[tuple[str, int]] = []
        self.brokers: dict[int, tuple[str, int]] = {}
        self.controller_id = -1
        self.client_id = "kspec"
        self.sasl: SaslMechanism | None = None
        self.tls: ssl.SSLContext | None = None

    def connect(self, arguments: Mapping[str, Any]) -> None:
        self.timeout = arguments["timeout_ms"] / 1000
        self.client_id = arguments.get("client_id", "kspec")
        self.bootstrap = [_address(each) for each in arguments["bootstrap"].split(",")]
        self.brokers, self.controller_id, self.links = {}, -1, {}
        sasl = arguments.get("sasl")
        self.sasl = None if sasl is None else self.mechanism(sasl)
        tls = arguments.get("tls")
        self.tls = None if tls is None else self.context(tls)

    def mechanism(self, wanted: Mapping[str, Any]) -> SaslMechanism:
        if wanted["mechanism"] == self.bearer.mechanism:
            return self.bearer(wanted["tokens"])
        name, user, password = (wanted[each] for each in ("mechanism", "username", "password"))
        return SaslPlain(user, password) if name == "PLAIN" else self.scram(name, user, password)

    def context(self, files: Mapping[str, str]) -> ssl.SSLContext:
        """Trust one authority, and check the broker's name (KIP-294)."""
        context = ssl.create_default_context(cafile=files["ca"])
        if "certificate" in files:
            context.load_cert_chain(files["certificate"], files["key"])
        return context

    async def close(self) -> None:
        await self.close_links()

    async def close_links(self) -> None:
        links, self.links = self.links, {}
        for link in links.values():
            await link.close()

    # ---- choosing a broker -----------------------------------------------------------------------

    async def link_to(self, address: tuple[str, int]) -> Link:
        """Return the open connection, or a new one, which negotiates versions again."""
        link = self.links.get(address)
        if link is not None and link.closed is None:
            if link.outlived and self.sasl is not None:
                await self.renew(link, self.sasl)
            return link
        if link is not None:
            await link.close()
        link = self.link(client_id=self.client_id, timeout=self.timeout, sasl=self.sasl)
        self.links[address] = link
        await link.open(*address, self.tls)
        return link

    async def renew(self, link: Link, sasl: SaslMechanism) -> None:
        """Reauthenticate on a connection whose session is about to expire (KIP-368)."""
        try:
            await link.authenticate(sasl)
        except BaseException:
            await link.close()
            raise

    async def any_link(self) -> Link:
        """Connect to a known broker, or else to a bootstrap address (KIP-899). One that does not
        answer is skipped like one that is down."""
        problem: Exception = LinkClosedError("no broker is known")
        for address in dict.fromkeys([*self.brokers.values(), *self.bootstrap]):
            try:
                return await self.link_to(address)
            except (LinkClosedError, TimedOutError) as error:
                problem = error
        raise problem

    async def controller_link(self) -> Link:
        if self.controller_id not in self.brokers:
            await self.refresh()
        if self.controller_id not in self.brokers:
            raise BrokerError(_NOT_CONTROLLER, "no controller is known")
        return await self.link_to(self.brokers[self.controller_id])

    async def refresh(self) -> None:
        request: Any = self.codec.message("MetadataRequest")
        link = await self.any_link()
        # An empty list means no topics from version 1 on, and every topic at version 0.
        answer = await link.ask(request(topics=[]))
        await self.check_metadata(answer)
        self.learn(answer)

    async def check_metadata(self, answer: Any) -> None:
        """Start over with the bootstrap list if the broker says so (KIP-1102). Raises
        LinkClosedError, so that the request is made again."""
        if getattr(answer, "error_code", 0) == _REBOOTSTRAP_REQUIRED:
            self.brokers = {}
            await self.close_links()
            raise LinkClosedError("the broker wants its clients to start over")

    def learn(self, metadata: Any) -> None:
        """Update the brokers and the controller."""
        self.learn_brokers(
            {each.node_id: (each.host, each.port) for each in metadata.brokers},
            metadata.controller_id,
        )

    def learn_brokers(self, brokers: dict[int, tuple[str, int]], controller_id: int) -> None:
        """Store the brokers and the controller; a list without brokers is ignored."""
        if brokers:
            self.brokers, self.controller_id = brokers, controller_id

    # ---- requests --------------------------------------------------------------------------------

    async def ask(
        self,
        where: Callable[[], Awaitable[Link]],
        body: Any,
        code_of: Callable[[Any], int],
        check: Callable[[Link], None] = lambda _link: None,
    ) -> Any:
        """Send a request until a broker answers without an error, or time is up."""
        attempt = 0
        ends = asyncio.get_running_loop().time() + self.timeout
        while True:
            attempt += 1
            try:
                link = await where()
                check(link)
                answer = await link.ask(body)
                code = code_of(answer)
                if not code:
                    return answer
                problem: Exception = BrokerError(code, getattr(answer, "error_message", None))
            except (LinkClosedError, BrokerError) as error:
                problem = error
            pause = self.pause(attempt)
            out_of_time = asyncio.get_running_loop().time() + pause > ends
            ends_here = out_of_time and attempt >= self.least_attempts
            if ends_here or not self.may_ask_again(problem, attempt):
                raise problem
            await asyncio.sleep(pause)
            self.forget(problem)

    def pause(self, attempt: int) -> float:
        """Return the seconds before the next attempt, which grow (KIP-580)."""
        return float(min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE))

    def may_ask_again(self, problem: Exception, attempt: int) -> bool:
        """Return whether a retry can help: the connection was lost, or the error is retriable."""
        if isinstance(problem, BrokerError):
            return error_codes.is_retriable(problem.code)
        return True

    def forget(self, problem: Exception) -> None:
        """Discard what is out of date."""
        self.controller_id = -1

    def require(self, link: Link, api_key: int, version: int, problem: str) -> None:
        """Refuse to send a request that the broker's versions cannot express."""
        if link.choose_version(api_key) < version:
            raise UnsupportedVersionError(problem)

    # ---- results ---------------------------------------------------------------------------------

    def outcomes(self, wanted: Sequence[str], rows: Outcomes) -> dict[str, Any]:
        """Return an outcome per requested partition. A partition missing from the answer is an
        error."""
        found: dict[str, Any] = {}
        for key in wanted:
            if key not in rows:
                found[key] = outcome(-1, "the broker gave no outcome")
            else:
                code, message = rows[key]
                found[key] = outcome(code, message) if code else None
        return found


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
