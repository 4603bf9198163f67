"""A live ``mockbroker serve`` under fire: malformed frames by the million on hundreds of sockets,
slow senders, floods, and well-formed questions among them, each of which must be answered rightly.

``python -m fuzz.fire --help``; docs/security.md says what a run showed.
"""
