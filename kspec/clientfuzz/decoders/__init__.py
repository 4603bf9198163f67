"""Give the same mutated frames to many decoders: a disagreement is a finding that needs no oracle.

``codecs`` are kproto's, ``kafka_classes`` Kafka's own, ``client_decoder`` wraps real clients and
``program_decoder`` the user's program. ``causes`` groups disagreements, ``expected`` lists known
ones, and ``run`` plays a seed. docs/explanation/fuzz-differential.md is the guide for users.
"""
