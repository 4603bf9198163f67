"""The notation of partitions, lists and errors in Kafka's tools. Each tool composes its own
output."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kproto import error_codes

__all__ = [
    "JAVA_ERRORS",
    "counted",
    "java_error",
    "java_list",
    "joined",
    "plural",
    "show_partition",
    "show_partitions",
]


def show_partition(partition: tuple[str, int]) -> str:
    """Return ``foo-0``."""
    topic, index = partition
    return f"{topic}-{index}"


def show_partitions(partitions: Iterable[tuple[str, int]], separator: str = ",") -> str:
    """Return partitions sorted by topic, then index: ``bar-0,foo-2,foo-10``."""
    return separator.join(map(show_partition, sorted(partitions)))


def joined(values: Iterable[object]) -> str:
    """Return ``1,2,3``."""
    return ",".join(map(str, values))


def java_list(values: Iterable[object]) -> str:
    """Return a collection in Java's notation: ``[1, 2, 3]``."""
    return f"[{', '.join(map(str, values))}]"


def plural(count: int) -> str:
    """Return the ending of "partition reassignment": none for one, else an s."""
    return "" if count == 1 else "s"


def counted(count: int, thing: str) -> str:
    """Return "1 case" or "2 cases"."""
    return f"{count} {thing}{plural(count)}"


JAVA_ERRORS: Final = "org.apache.kafka.common.errors."
"""The package of exceptions whose names Kafka's tools print."""
_SUFFIX: Final = re.compile(r"_(FAILED|EXCEPTION|ERROR)$")
_IRREGULAR: Final = {
    "CORRUPT_MESSAGE": "CorruptRecordException",
    "REQUEST_TIMED_OUT": "TimeoutException",
    "MESSAGE_TOO_LARGE": "RecordTooLargeException",
    "STALE_CONTROLLER_EPOCH": "ControllerMovedException",
    "OFFSET_METADATA_TOO_LARGE": "OffsetMetadataTooLarge",
    "RECORD_LIST_TOO_LARGE": "RecordBatchTooLargeException",
    "TOPIC_ALREADY_EXISTS": "TopicExistsException",
    "INVALID_CONFIG": "InvalidConfigurationException",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "OutOfOrderSequenceException",
    "DUPLICATE_SEQUENCE_NUMBER": "DuplicateSequenceException",
    "INVALID_PRODUCER_ID_MAPPING": "InvalidPidMappingException",
    "INVALID_TRANSACTION_TIMEOUT": "InvalidTxnTimeoutException",
    "DELEGATION_TOKEN_AUTH_DISABLED": "DelegationTokenDisabledException",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "UnsupportedByAuthenticationException",
    "NON_EMPTY_GROUP": "GroupNotEmptyException",
    "PRINCIPAL_DESERIALIZATION_FAILURE": "PrincipalDeserializationException",
    "FEATURE_UPDATE_FAILED": "FeatureUpdateFailedException",
    "INVALID_REGULAR_EXPRESSION": "InvalidRegularExpression",
}


def java_error(code: int, message: str) -> str:
    """Return an error as a Java tool prints the exception of that code: class name, then message.
    With few exceptions, the class name is the code's name in camel case; scripts look for it."""
    name = error_codes.name(code)
    words = re.sub(r"[^A-Z0-9]+", " ", _SUFFIX.sub("", name)).split()
    regular = "".join(word.capitalize() for word in words) + "Exception"
    return f"{JAVA_ERRORS}{_IRREGULAR.get(name, regular)}: {message}"
