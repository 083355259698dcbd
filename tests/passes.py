"""Repeated passes of a search over the same points, for tests of several folders."""

from cprime._utils.random import Key
from cprime.execution.block import Block
from cprime.kernels import as_rows

KEY = Key(0)


class Passes:
    """Search that runs pass after pass over the same points; components change only if the caller changes them."""

    def __init__(self, search, X, components, n_kept=1, sample_weight=None, key=KEY):
        self.search, self.block, self.n_kept, self.key = search, Block(as_rows(X), sample_weight), n_kept, key
        self.state, look = search.begin(components, n_kept, False, key)
        self.kept = look(self.block, self.block.X, None, components, n_kept).kept

    def lists(self):
        return self.search.neighbors(self.state)

    def refresh(self, components):
        self.state, _ = self.search.refresh(self.state, components)

    def find(self, components):
        """Run one pass, update the state of the search, and return the found active sets."""
        self.key = self.key._replace(iteration=self.key.iteration + 1)
        look = self.search.look(self.state, components, self.key)
        found = look(self.block, self.block.X, self.kept, components, self.n_kept)
        self.kept = found.kept
        self.state, _ = self.search.learn(self.state, look, components, found.stats, self._sample, self.key)
        return found

    def _sample(self, rows):
        return self.block.X[rows], self.kept.at(rows)
