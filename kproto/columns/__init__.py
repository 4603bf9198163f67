"""Read selected fields of many bodies of one message into columns in Arrow's layout.

::

    from kproto.columns import select
    from kproto.messages import MetadataResponse

    partitions = select(MetadataResponse, 9, ["topics.name", "topics.partitions.partition_index"])
    table = partitions.read(bodies)        # bodies: a list of bytes
    table.to_arrow()                       # a pyarrow.RecordBatch over the same buffers
    table.to_pydict()                      # lists, without pyarrow

The elements of the deepest array of structs on the selected paths are the rows. Fields selected
above it repeat on each of its rows. If no array is on the paths, each body is one row. ``frame``
gives the body of each row.

With the native engine no Python object is made for a value (``kproto/native/columns.c``); without
it, ``pure`` makes the same buffers from decoded messages. ``places`` finds where selected fields
are in one frame, for consumers in C. This package contains no wire rules.
"""

from kproto.arrow import Column
from kproto.columns.layout import Field
from kproto.columns.selection import MOST_BYTES, Columns, Selection, select

__all__ = ["MOST_BYTES", "Column", "Columns", "Field", "Selection", "select"]
