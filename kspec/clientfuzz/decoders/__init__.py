"""The same damaged frame to many decoders: whoever disagrees is a finding that needs no oracle.

``codecs`` are ours, ``kafka_classes`` Kafka's own, ``clients`` real ones behind adapters;
``causes`` says who disagrees with whom and why, ``expected`` what of that is known, ``run`` plays a
seed. docs/fuzz-differential.md is for those who use it.
"""
