"""Benchmarks: programs that compare cprime with its peers on real data. `python -m benchmarks --list`."""
