"""Run every benchmark in turn, as ``make bench`` does."""

import sys

from benchmarks import (
    bench_broker,
    bench_codec,
    bench_columns,
    bench_data,
    bench_fairness,
    bench_proxy,
    bench_records,
    bench_requests,
    bench_start,
)

for benchmark in (
    bench_codec,
    bench_columns,
    bench_records,
    bench_start,
    bench_broker,
    bench_data,
    bench_requests,
    bench_proxy,
    bench_fairness,
):
    sys.argv = [benchmark.__name__]
    benchmark.main()
