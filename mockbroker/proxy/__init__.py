"""A proxy in front of a real cluster: addresses rewritten, traffic recorded, versions clamped.

``passage`` is one client's connection without I/O; ``addresses``, ``versions`` and ``sasl_tokens``
are what it knows of the protocol. ``connections`` has the sockets, and ``kafka_proxy`` the
listeners of a proxy.
"""
