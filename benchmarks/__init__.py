"""Benchmarks: programs that compare cprime with what else there is, on the same data. `python -m benchmarks --help`.

`peers/` has an adapter for every competitor, `measures/` a file for every measure; each fit runs in a process of its
peer's own (`worker.py`), and what it returns is judged here (`quality.py`), never by what the peer says of itself.
"""
