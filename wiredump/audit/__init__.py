"""Find the clients whose requests a release would refuse. Pure: rows of tables go in, a verdict
comes out. ``observed`` collects the requests of each client, ``verdict`` compares them with a
release."""

from wiredump.audit.observed import Observed
from wiredump.audit.verdict import Audit, Client, Instead, Refused, audit

__all__ = ["Audit", "Client", "Instead", "Observed", "Refused", "audit"]
