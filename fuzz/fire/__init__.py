"""A load and abuse test of a live ``mockbroker serve``.

Millions of malformed frames on hundreds of sockets, slow senders and floods, and among them valid
requests, each of which must be answered correctly. See ``python -m fuzz.fire --help``;
docs/explanation/security.md has results.
"""
