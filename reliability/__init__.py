"""Long runs that try to break the library: generated cases, mutated files, sanitizers for the core, mutants for the
tests.

`python -m reliability COMMAND` prints the seed, the counts and the time; its exit status is 1 if anything failed.
"""
