"""Turn journals, request logs and hexadecimal into rows of tables, with a task for each file."""

from __future__ import annotations

from kproto.cli.dialect_option import named_dialect
from wiredump.sources.opening import open_sources, span
from wiredump.sources.request_logs import time_zone
from wiredump.spark.connections import Options
from wiredump.tables.deferred_rows import DeferredRows
from wiredump.tables.parts import Manifest, PartWriter

__all__ = ["write_text"]


def write_text(number: int, options: Options, task: int) -> Manifest:
    """Write the rows of one file."""
    codec = named_dialect(options.dialect)
    deferred = DeferredRows(options.tables, number + 1)
    writer = PartWriter(options.out, options.files, task)
    rows = options.rows(codec, deferred)
    sources = open_sources(
        [options.paths[number]],
        codec=codec,
        ports=frozenset(options.ports),
        first=number,
        zone=time_zone(options.zone),
    )
    manifest = Manifest()
    for item in sources:
        manifest.saw(*span(item))
        writer.add(deferred.rows(rows.add(item)))
    writer.add(rows.end(sources.connections, (), {}))
    writer.close()
    manifest.connections = len(sources.connections)
    manifest.parts = writer.parts()
    manifest.sources = [tuple(each) for each in sources.read]  # type: ignore[misc]
    return manifest
