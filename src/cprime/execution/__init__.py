"""Where the data live: maps an E-step over chunks and merges their statistics in a fixed order."""

from cprime.execution.memory import Chunk, InMemory

__all__ = ["Chunk", "InMemory"]
