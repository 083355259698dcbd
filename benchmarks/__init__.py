"""Benchmarks: programs that compare cprime with other libraries on the same data. `python -m benchmarks --help`.

`peers/` has an adapter for every library (peer), `measures/` a file for every measure. Each fit runs in a separate
process of its peer (`worker.py`). `quality.py` evaluates its result; a peer's own evaluation is never used.
"""
