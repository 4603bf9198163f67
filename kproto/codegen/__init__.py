"""Generate codecs and class modules from schemas. Nothing here runs while messages are coded.

``plan`` turns a schema and a version into a plan and contains every wire rule. ``emit_*`` turn a
plan into Python text; ``modules`` turns a schema into the text of its class module.
"""
