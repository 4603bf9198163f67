"""KRaft's reassignment controller."""
