"""Fetching: what a partition answers, the sessions of clients (KIP-227), and fetches that wait.

No sockets and no messages: names, ids and offsets go in, slices of logs come out. ``fetches`` is
the entrance; how a fetch waits in real time is the caller's business.
"""

from __future__ import annotations
