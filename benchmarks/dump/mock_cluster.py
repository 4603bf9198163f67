"""librdkafka's own mock cluster, through its C functions, to limit the versions of its brokers,
which its settings cannot do.

tshark (4.0) decodes no Produce beyond 8, no Fetch beyond 11 and so on: of newer versions it reads
only the header. Brokers are limited to those versions, so that equal work is compared.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

__all__ = ["KNOWN_TO_TSHARK", "MockCluster"]

KNOWN_TO_TSHARK = {0: 8, 1: 11, 2: 5, 3: 9, 8: 8, 12: 4, 22: 3}
"""Highest version, by api key: of those that librdkafka would use a newer one of."""

_PRODUCER = 0


class MockCluster:
    """Lives as long as the process."""

    def __init__(self, brokers: int, newest: dict[int, int]) -> None:
        library = _library()
        said = ctypes.create_string_buffer(512)
        handle = library.rd_kafka_new(_PRODUCER, None, said, len(said))
        if not handle:
            raise OSError(f"librdkafka does not start: {said.value.decode()}")
        cluster = library.rd_kafka_mock_cluster_new(handle, brokers)
        if not cluster:
            raise OSError("librdkafka has no mock cluster for us")
        for key, version in newest.items():
            if library.rd_kafka_mock_set_apiversion(cluster, key, 0, version) != 0:
                raise OSError(f"librdkafka's mock cluster has no api key {key} to limit")
        self.servers = str(library.rd_kafka_mock_cluster_bootstraps(cluster).decode())


def _library() -> ctypes.CDLL:
    """The very one that confluent_kafka has loaded."""
    import confluent_kafka

    assert confluent_kafka.libversion()[1]
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if "librdkafka" in path:
            library = ctypes.CDLL(path)
            break
    else:
        raise OSError("confluent_kafka has no librdkafka that can be found")
    library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_new.argtypes = [
        ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
    ]  # fmt: skip
    library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_new.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.rd_kafka_mock_set_apiversion.restype = ctypes.c_int
    library.rd_kafka_mock_set_apiversion.argtypes = [
        ctypes.c_void_p, ctypes.c_int16, ctypes.c_int16, ctypes.c_int16,
    ]  # fmt: skip
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    library.rd_kafka_mock_cluster_bootstraps.argtypes = [ctypes.c_void_p]
    return library
