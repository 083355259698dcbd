"""The checks of scikit-learn's parameters, once for the same values: of a small fit they would take a tenth."""

from typing import Any

_MOST = 1024  # sets of values that are remembered
_SIMPLE = (str, int, float, bool, type(None))
_valid: set[tuple] = set()


class CheckedOnce:
    """Mixin before an estimator of scikit-learn's."""

    _parameter_constraints: dict[str, Any]

    def _validate_params(self) -> None:
        """As scikit-learn's; what has passed before is not looked at again."""
        values = [getattr(self, name, None) for name in self._parameter_constraints]
        kinds = [type(value) for value in values]
        if not all(kind in _SIMPLE for kind in kinds):
            super()._validate_params()  # type: ignore[misc]
            return
        seen = (type(self), *kinds, *values)  # 1, 1.0 and True are equal
        if seen in _valid:
            return
        super()._validate_params()  # type: ignore[misc]
        if len(_valid) >= _MOST:
            _valid.clear()
        _valid.add(seen)
