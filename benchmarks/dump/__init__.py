"""The parts of ``bench_dump``: captures, the programs that read them, and their measurements.

``traffic`` makes real traffic to capture, ``synthetic`` and ``giant`` write captures, and
``captures`` makes each once and keeps it. ``programs`` runs a program and measures it, ``cases``
has the command lines, ``spark_session`` is a Spark that stays started. ``dump_marks`` judges.
"""
