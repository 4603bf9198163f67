"""State from earlier messages that is needed to read later ones: names of topic ids, fetch
sessions, the brokers of each cluster, and reassignments, rebalances and transactions in progress.

::

    excerpts       what the others need of exchanges, from JSON bodies
    order          exchanges sorted by request
    topics         topic ids to names
    sessions       fetch sessions (KIP-227) to their partitions
    clusters       addresses of brokers to clusters
    reassignments  reassignments from request to end (KIP-455)
    groups         rebalances of groups, by generation or epoch
    transactions   transactions from their first request to EndTxn
    copies         exchanges that were captured twice, before and after a translation of addresses
    following      these tables, and what makes each

No files, no Parquet, no Spark. Each class takes ``Excerpt`` values in the order of requests, is
bounded, and returns rows. The same input gives the same rows, whether it comes from a capture or
from the tables ``requests`` and ``bodies``.
"""
