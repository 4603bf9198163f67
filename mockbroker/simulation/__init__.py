"""What a cluster is and does, without sockets, bytes or a clock of its own.

``cluster`` joins the parts; ``operations`` is what a tester does to them; ``releases`` is what
differs between releases of Kafka.
"""
