"""Generate a Wireshark dissector in Lua: the messages of the schemas, as tables, and the code that
walks them.

``generate`` makes the text. ``dissector.lua`` is the part that no schema changes.
"""

from kproto.wireshark.generate import dissector

__all__ = ["dissector"]
