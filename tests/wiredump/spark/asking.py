"""Answer saved questions about tables in an object store, which Spark reads by its own client:
``python asking.py JAR,JAR ENDPOINT URI QUESTION,QUESTION``. A program of its own, because Java
takes the jars when it starts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from wiredump.questions.answers import Tables
from wiredump.questions.saved import questions

__all__ = ["asked"]


def asked(tables: Tables, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns and the rows of each answer."""
    answers = tables.answers([questions()[name].query for name in names])
    return {
        name: [repr(found.columns), *map(repr, found.rows)]
        for name, found in zip(names, answers, strict=True)
    }


def main(jars: str, endpoint: str, where: str, names: str) -> None:
    from wiredump.spark import register
    from wiredump.spark.session import start

    client = {
        "endpoint": f"http://{endpoint}", "endpoint.region": "us-east-1",
        "path.style.access": "true", "connection.ssl.enabled": "false",
        "access.key": "testing", "secret.key": "testing", "input.stream.type": "classic",
    }  # fmt: skip
    settings = {f"spark.hadoop.fs.s3a.{name}": value for name, value in client.items()}
    spark = start("local[2]", settings={"spark.jars": jars, **settings})
    tables = register(spark, where)
    tables.require_schema()
    print(json.dumps(asked(tables, names.split(","))))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
