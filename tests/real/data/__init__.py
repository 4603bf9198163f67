"""Sessions of the data plane: scripts that are played on Kafka and on the mock.

A script is a coroutine over one ``Side``. It is played once on each cluster, and the transcripts of
both are compared field by field. ``python -m tests.real.data`` plays them by hand, and records what
Kafka answers.
"""

from __future__ import annotations
