"""What the adapters of Python clients share: an admin client, and a producer with a consumer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from kspec.adapters.python.data_clients import DATA_CALLS, DataClients
from kspec.adapters.python.lines import DONE, Operation, Returned, client_call

__all__ = ["AdminAdapter"]


class AdminAdapter(ABC):
    """The admin client is made by its first call, so that its first error is an answer."""

    client: str
    version: str
    admin_calls: ClassVar[Mapping[str, Callable[[Any, dict[str, Any]], Any]]]
    """Take the client and the call, to which ``timeout_ms`` of ``connect`` is added."""

    def __init__(self) -> None:
        self.timeout_ms = 0
        self._admin: Any = None
        self._data: DataClients | None = None

    def operations(self) -> Mapping[str, Operation]:
        of_admin = {name: self._of_admin(each) for name, each in self.admin_calls.items()}
        return of_admin | {name: self._of_data(name) for name in DATA_CALLS}

    def connect(self, call: dict[str, Any]) -> Returned:
        self.timeout_ms = call["timeout_ms"]
        self._data = self.set_up(call)
        return DONE

    @abstractmethod
    def set_up(self, call: dict[str, Any]) -> DataClients:
        """Keep the options of the clients to be made."""

    @abstractmethod
    def new_admin(self) -> Any: ...

    @abstractmethod
    def close_admin(self, admin: Any) -> None: ...

    def perform(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    def close(self) -> None:
        data, self._data = self._data, None
        if data is not None:
            data.close()
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(Exception):  # its state may not allow a clean close
                self.close_admin(admin)

    @property
    def admin(self) -> Any:
        if self._admin is None:
            with client_call():
                self._admin = self.perform(self.new_admin)
        return self._admin

    def _of_admin(self, work: Callable[[Any, dict[str, Any]], Any]) -> Operation:
        def operation(call: dict[str, Any]) -> Returned:
            given = {**call, "timeout_ms": self.timeout_ms}
            returned: Returned = self.perform(work, self.admin, given)
            return returned

        return operation

    def _of_data(self, name: str) -> Operation:
        def operation(call: dict[str, Any]) -> Returned:
            assert self._data is not None, "connect comes first"
            return self._data.operations()[name](call)

        return operation
