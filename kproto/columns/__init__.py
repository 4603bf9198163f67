"""Many bodies of one message straight into columns: chosen fields, Arrow's layout, no objects.

::

    from kproto.columns import select
    from kproto.messages import MetadataResponse

    partitions = select(MetadataResponse, 9, ["topics.name", "topics.partitions.partition_index"])
    table = partitions.read(bodies)        # bodies: a list of bytes
    table.to_arrow()                       # a pyarrow.RecordBatch over the same buffers
    table.to_pydict()                      # lists, without pyarrow

The deepest array of structs on the chosen paths is the row; what was chosen above it repeats on
each of its rows; with no array on the paths a row is a body. ``frame`` says of each row which body
it came from.
Where the native engine runs, no Python object is made for a value (``kproto/native/columns.c``);
elsewhere the same buffers come out of decoded messages (``pure``). This package knows no wire rule.
"""

from kproto.arrow import Column
from kproto.columns.layout import Field
from kproto.columns.selection import MOST_BYTES, Columns, Selection, select

__all__ = ["MOST_BYTES", "Column", "Columns", "Field", "Selection", "select"]
