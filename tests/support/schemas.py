"""The released schemas, loaded once for all tests of a process."""

from collections.abc import Mapping
from functools import cache

from kproto.schema.load import load_directory, schemas_directory
from kproto.schema.model import MessageSchema

__all__ = ["of_dialect", "released"]


@cache
def of_dialect(name: str) -> Mapping[str, MessageSchema]:
    """The schemas in the folder of a dialect, such as ``kip-455``, by the message's name."""
    return load_directory(schemas_directory() / name.replace("-", "_"))


def released() -> Mapping[str, MessageSchema]:
    """The schemas of released Kafka by the message's name."""
    return of_dialect("kafka")
