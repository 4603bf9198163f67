"""Faults as rules: which requests a mock cluster answers otherwise than a broker would, and how.

``model`` is what a rule says and ``parse`` where it comes from; ``matching`` picks the rule for a
request; ``answers`` changes what is said, ``frames`` how it is framed, and ``planning`` decides
which bytes go out when. None of them knows a socket: ``serving.server`` performs the plan.
"""

from __future__ import annotations

from mockbroker.faults.documents import fault_of, faults_of, read_faults
from mockbroker.faults.rule import Fault

__all__ = ["Fault", "fault_of", "faults_of", "read_faults"]
