"""moto's S3 server in a thread of the test process, on a port of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from tests.support.toolchain import require_module

__all__ = ["Bucket", "ObjectStore", "object_store"]

_numbers = count(1)


class Bucket:
    """A bucket. URIs carry the credentials, so that Spark's tasks need no environment."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        self._store = store
        self.name, self.address = name, store.address
        self.query = f"?endpoint_override={store.address}&scheme=http&region=us-east-1"

    def uri(self, path: str, scheme: str = "s3") -> str:
        return f"{scheme}://testing:testing@{self.name}/{path}{self.query}"

    def put(self, path: str, data: bytes) -> str:
        """Store an object; returns its URI."""
        self._store.client.put_object(Bucket=self.name, Key=path, Body=data)
        return self.uri(path)

    def get(self, path: str) -> bytes:
        return bytes(self._store.client.get_object(Bucket=self.name, Key=path)["Body"].read())

    def keys(self) -> list[str]:
        """The names of all objects, without those that stand for folders."""
        pages = self._store.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        found = [each["Key"] for page in pages for each in page.get("Contents", [])]
        return [key for key in found if not key.endswith("/")]


class ObjectStore:
    def __init__(self, address: str) -> None:
        boto3 = require_module("boto3")
        self.address = address
        self.client = boto3.client(
            "s3", endpoint_url=f"http://{address}", region_name="us-east-1",
            aws_access_key_id="testing", aws_secret_access_key="testing",
        )  # fmt: skip

    def bucket(self) -> Bucket:
        """Create a bucket."""
        name = f"bucket-{next(_numbers)}"
        self.client.create_bucket(Bucket=name)
        return Bucket(self, name)


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Skips, or fails where required, if moto is not installed."""
    require_module("moto")
    server_module = require_module("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield ObjectStore(f"{host}:{port}")
    finally:
        server.stop()
