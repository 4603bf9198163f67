"""The logs of partitions: batches as producers sent them, offsets, leader epochs, high watermarks.

A log belongs to a partition, not to a replica: a follower holds a beginning of its leader's log, so
one log and one end offset a replica are enough (``replicas.replication``). No sockets and no
messages; bytes, ids and offsets go in, plain values come out.

``batches`` are bytes, ``partition_log`` is one log, ``logs`` are all of a cluster. ``producing``
appends to them, ``cleaning`` drops their beginnings, and ``replicas`` says who has what.
"""

from __future__ import annotations
