"""Codecs at run time: message classes, the registry of codecs, the interpreter, JSON and partial
decoding. ``kproto.codegen`` generates what runs here."""
