"""Fuzz Kafka clients, decoders and brokers with mutated frames.

``mutate`` makes invalid frames from valid ones. ``clients`` gives them to a real client and watches
it, ``decoders`` compares what many decoders make of them, and ``brokers`` sends them to brokers.
docs/how-to/fuzz-your-client.md is the guide for users. ``fuzz/``, in contrast, looks for kproto's
own defects.
"""
