"""Choose versions: ApiVersions, its fallback (KIP-511), and the highest common version.

These are pure functions of decoded messages and version ranges; the connections send and receive.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any, Final, NamedTuple

from kproto.dialects import Api, Dialect
from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError, UnsupportedVersionError
from kproto.schema.versions import Versions

__all__ = [
    "API_VERSIONS_KEY",
    "ApiVersionsReply",
    "advertised",
    "choose_version",
    "is_refusal",
    "next_attempt",
    "read_reply",
    "refusal",
]

API_VERSIONS_KEY: Final = 18

# After the size and the correlation id; the response header is v0 whatever the version.
_read_error_code: Final = Struct(">h").unpack_from
_ERROR_CODE_OFFSET: Final = 8


class ApiVersionsReply(NamedTuple):
    header: Any
    body: Any
    body_version: int
    """The version of the body: 0 if the peer refused ours."""


def read_reply(dialect: Dialect, frame: bytes, version: int) -> ApiVersionsReply:
    """Decode the response to ApiVersions ``version``. Raises DecodeError.

    A broker that does not serve that version responds with error 35 in a body of version 0, since
    it cannot know a layout that both share. A body in the requested version is accepted too.
    """
    if version != 0 and is_refusal(frame):
        try:
            return _decode(dialect, frame, 0)
        except DecodeError:
            return _decode(dialect, frame, version)
    return _decode(dialect, frame, version)


def _decode(dialect: Dialect, frame: bytes, version: int) -> ApiVersionsReply:
    header, body = dialect.decode_response(frame, api_key=API_VERSIONS_KEY, api_version=version)
    return ApiVersionsReply(header, body, version)


def is_refusal(frame: bytes) -> bool:
    """Whether an ApiVersions response has error 35, which every version has in the same place."""
    if len(frame) < _ERROR_CODE_OFFSET + 2:
        return False
    return bool(_read_error_code(frame, _ERROR_CODE_OFFSET)[0] == ErrorCode.UNSUPPORTED_VERSION)


def advertised(body: Any) -> dict[int, Versions]:
    """Return the rows of an ApiVersionsResponse unchanged; an invalid range is an empty one."""
    return {row.api_key: Versions(row.min_version, row.max_version) for row in body.api_keys}


def next_attempt(refused: int, attempt: int, rows: Mapping[int, Versions]) -> int | None:
    """Return the ApiVersions version to request after ``refused`` failed with error 35.

    The peer's row for key 18 is used once (``attempt`` counts from 1) and only if it leads to a
    lower version. Then version 0 is the last resort, and None means giving up. A peer that names
    the version it refuses therefore costs three requests and cannot cause a loop.
    """
    if refused == 0:
        return None
    row = rows.get(API_VERSIONS_KEY)
    if attempt == 1 and row is not None and 0 <= row.highest < refused:
        return row.highest
    return 0


def choose_version(api: Api, peer: Mapping[int, Versions], allowed: Versions | None = None) -> int:
    """Return the highest version that ``allowed`` (all of ours if None) and the peer have in
    common.

    Raises UnsupportedVersionError in the words of Kafka's own clients.
    """
    ours = api.valid_versions if allowed is None else allowed.intersect(api.valid_versions)
    theirs = peer.get(api.api_key)
    if theirs is None:
        raise UnsupportedVersionError(f"The node does not support {api.name}")
    common = ours.intersect(theirs)
    if not common:
        ours_allowed = ours if allowed is None else allowed
        raise UnsupportedVersionError(
            f"The node does not support {api.name} with version in range "
            f"[{ours_allowed.lowest},{ours_allowed.highest}]. "
            f"The supported range is [{theirs.lowest},{theirs.highest}]."
        )
    return common.highest


def refusal(dialect: Dialect, served: Versions | None) -> Any:
    """Return the body, to be encoded at version 0, for an ApiVersions version that is not served.

    ``served`` is our range for key 18, which brokers send since Kafka 2.4 (KIP-511). Before that
    they sent no row: pass None.
    """
    response: Any = dialect.message("ApiVersionsResponse")
    row: Any = dialect.message("ApiVersionsResponse.ApiVersion")
    rows = [] if served is None else [
        row(
            api_key=API_VERSIONS_KEY,
            min_version=served.lowest,
            max_version=served.highest,
        )
    ]  # fmt: skip
    return response(error_code=int(ErrorCode.UNSUPPORTED_VERSION), api_keys=rows)
