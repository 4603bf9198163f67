"""The Spark session of a command: the one that its process has, or one that ends with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from kproto.errors import KprotoError

__all__ = ["spark_session"]


@contextmanager
def spark_session(
    master: str | None, remote: str | None, *, progress: bool = False
) -> Iterator[Any]:
    """Yield a session: on the server ``remote``, or the one that this process has, such as a
    notebook's, or one on ``master``. It is stopped if it was started here.

    Raises MissingExtraError, NoJavaError and SparkStartError, and turns what Spark raises into a
    KprotoError of one line.
    """
    # Imported late: these need pyspark, which may be missing.
    from wiredump.spark.session import failure, require_spark, running_session, start

    require_spark()
    running = None if remote else running_session()
    spark = running or start(master, progress=progress, remote=remote)
    try:
        yield spark
    except (KprotoError, click.ClickException):
        raise
    except Exception as error:
        raise failure(error) from error
    finally:
        if running is None:
            with suppress(Exception):  # of a Java process or a server that is gone
                spark.stop()
