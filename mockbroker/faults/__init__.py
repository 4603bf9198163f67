"""Fault rules: which requests a mock cluster answers differently from a broker, and how.

``rule`` defines a rule and ``documents`` reads rules from YAML and JSON. ``matching`` picks the
rule for a request. ``message_edits`` and ``partial_errors`` change the response message,
``frame_edits`` its bytes, and ``delivery`` plans which bytes go out when. The package opens no
sockets: ``serving.fault_stage`` runs a rule, and ``serving.server`` writes the bytes.
"""

from __future__ import annotations

from mockbroker.faults.documents import fault_of, faults_of, read_faults
from mockbroker.faults.rule import Fault

__all__ = ["Fault", "fault_of", "faults_of", "read_faults"]
