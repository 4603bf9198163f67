"""The common parts of the newer protocols' groups: consumer groups (KIP-848), share groups
(KIP-932) and streams groups (KIP-1071).

Their members heartbeat with an epoch, the broker makes a target assignment for the epoch of the
group, and everything is written to ``__consumer_offsets`` as records.
"""
