"""What file systems report, with the place and a remedy.

::

    KprotoError
    ├── StorageError    the file system cannot be used, or refuses the operation
    └── ChangedError    a file has another content than when it was first looked at

A file that does not exist raises FileNotFoundError, as a local one does.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kproto.errors import KprotoError

__all__ = ["NO_BUCKET", "ChangedError", "StorageError", "not_found", "translated"]

NO_BUCKET: Final = "there is no such bucket or container: check its name, region and endpoint"

_UNREACHABLE: Final = "the server cannot be reached: check the host and the port"
_S3_DOUBLE: Final = " (of another S3 server: ?endpoint_override=HOST:PORT&scheme=http)"

_REMEDIES: Final = (
    (
        re.compile(r"NO_SUCH_BUCKET|bucket does not exist|ContainerNotFound|BucketNotFound", re.I),
        NO_BUCKET,
    ),
    (
        re.compile(
            r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|"
            r"UNRECOGNIZED_CLIENT|Forbidden|HTTP response code 403|AuthenticationFailed|"
            r"AuthorizationFailure|Permission denied|Unauthorized",
            re.I,
        ),
        "access was denied: check the credentials in the environment (AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY or AWS_PROFILE, GOOGLE_APPLICATION_CREDENTIALS, AZURE_CLIENT_ID, "
        "HADOOP_USER_NAME) and the permissions",
    ),
    (
        re.compile(r"NETWORK_CONNECTION|Could not connect|Couldn't resolve|Connection refused|"
                   r"connection error|timed? ?out", re.I),
        _UNREACHABLE,
    ),
)  # fmt: skip


class StorageError(KprotoError):
    """A file system cannot be used, or refused an operation. The message has the place, the reason
    and a remedy."""


class ChangedError(KprotoError):
    """A file changed after it was first looked at."""


def not_found(shown: str) -> FileNotFoundError:
    """Return the error for a file that does not exist."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown)


@contextmanager
def translated(shown: str) -> Iterator[None]:
    """Turn the errors of file systems into those of this module. ``shown`` names the place."""
    try:
        yield
    except FileNotFoundError as error:
        raise not_found(shown) from error
    except (KprotoError, EOFError):
        raise
    except Exception as error:  # each file system has its own classes
        text = " ".join(str(error).split()) or type(error).__name__
        for pattern, remedy in _REMEDIES:
            if pattern.search(text):
                hint = _S3_DOUBLE if shown.startswith("s3") and remedy == _UNREACHABLE else ""
                raise StorageError(f"{shown}: {remedy}{hint} ({text})") from error
        raise StorageError(f"{shown}: {text}") from error
