"""Long runs that try to break the library: generated cases, mutated files, the compiled core alone; and the tests.

`python -m reliability COMMAND`; each prints its seed, its counts and its time, and exits with 1 where anything failed.
"""
