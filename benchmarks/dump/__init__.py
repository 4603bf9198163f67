"""What ``bench_dump`` is made of: captures, the programs that read them, and what each took.

``traffic`` makes real traffic to capture, ``synthetic`` and ``giant`` write captures themselves,
``captures`` has each made once and kept. ``programs`` runs a program and tells what it took of the
machine, ``cases`` knows the command lines, ``spark_session`` is a Spark that stays started.
``dump_marks`` judges.
"""
