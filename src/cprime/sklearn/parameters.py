"""Cache of successful parameter checks of scikit-learn, which would take a tenth of the time of a small fit."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from cprime._utils.random import check_random_state

Method = TypeVar("Method", bound=Callable[..., Any])

_MOST = 1024  # maximum number of sets of checked parameter values in the cache
_SIMPLE = (str, int, float, bool, type(None))
_valid: set[tuple] = set()


def with_generator(method: Method) -> Method:
    """Decorate an estimator's method so that `random_state` may be a NumPy Generator, which scikit-learn refuses.

    While the method runs, `random_state` is a RandomState that shares the Generator's state.
    """

    @wraps(method)
    def served(self: Any, *args: Any, **kwargs: Any) -> Any:
        generator = self.random_state
        if not isinstance(generator, np.random.Generator):
            return method(self, *args, **kwargs)
        self.random_state = check_random_state(generator)
        try:
            return method(self, *args, **kwargs)
        finally:
            self.random_state = generator

    return served  # type: ignore[return-value]


class CheckedOnce:
    """Mixin for an estimator of scikit-learn that checks each combination of parameter values only once per process."""

    _parameter_constraints: dict[str, Any]

    def _validate_params(self) -> None:
        """Validate the parameters as scikit-learn does, unless an estimator of this class with equal ones has passed.

        Parameters are always validated if one of them is neither a string nor a number, a bool or None. The cache is
        emptied when it has 1024 combinations of values.
        """
        values = [getattr(self, name, None) for name in self._parameter_constraints]
        kinds = [type(value) for value in values]
        if not all(kind in _SIMPLE for kind in kinds):
            super()._validate_params()  # type: ignore[misc]
            return
        seen = (type(self), *kinds, *values)  # With types, because 1, 1.0 and True are equal.
        if seen in _valid:
            return
        super()._validate_params()  # type: ignore[misc]
        if len(_valid) >= _MOST:
            _valid.clear()
        _valid.add(seen)
