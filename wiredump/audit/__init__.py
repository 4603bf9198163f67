"""Which clients of some traffic a release would refuse. Pure: rows of the tables go in, a verdict
comes out. ``observed`` gathers who asked what, ``verdict`` holds it against a release."""

from wiredump.audit.observed import Observed
from wiredump.audit.verdict import Audit, Client, Instead, Refused, audit

__all__ = ["Audit", "Client", "Instead", "Observed", "Refused", "audit"]
