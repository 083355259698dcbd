"""Source of rows of a file or folder that are read once and then held in memory."""

from cprime.sources.arrays import ArraySource
from cprime.sources.base import Source

AS_HELD = True  # marks weights that the base source reopens, so that no path of the weights is needed


class MaterializedSource(ArraySource):
    """Source that holds all rows and weights of another source in memory as one chunk. Reopening reads them again."""

    def __init__(self, base: Source) -> None:
        super().__init__(base.read(0, base.n_rows, base.stored), base.name, base.columns, base._files)
        self._base = base
        self.preparation = base.preparation
        weights = base.weights(0, base.n_rows)
        if weights is not None:
            self._weights = self.with_weights(weights)._weights
            self._weights_spec = None if base._weights_spec is None else AS_HELD
        self._opened_with = None if base.opened_from is None else {"held": base.opened_from}

    def _where(self, row: int) -> str:
        return self._base._where(row)

    def _column_of(self, j: int) -> str:
        return self._base._column_of(self._positions[j])

    def _identity(self) -> bytes:
        return self._base.fingerprint()
