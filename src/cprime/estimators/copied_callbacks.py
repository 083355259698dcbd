"""Mixin of the estimators with callbacks: determines which callbacks are in copies, clones and pickles."""

import copy
from typing import Any, Self

from sklearn.base import BaseEstimator

from cprime.callbacks.copying import all_callbacks, deep_copied, picklable
from cprime.estimators.watching import CallbackSupportMixin

_NAMES = ("callbacks", "_skl_callbacks")  # cprime's callbacks, and those that scikit-learn's `set_callbacks` sets


class CopiedCallbacks(CallbackSupportMixin):
    """Mixin before `BaseEstimator`, for estimators with the parameter `callbacks`.

    A pickle of a fitted estimator lacks the callbacks that cannot be pickled; the log names them. The state of an
    estimator that is not fitted contains all callbacks, because its fit needs them. Copies and clones share those
    callbacks with the original that cannot be copied.
    """

    callbacks: Any

    def __getstate__(self) -> dict[str, Any]:
        above: Any = super()
        state: dict[str, Any] = above.__getstate__()
        if not any(name[-1] == "_" for name in state):
            return state
        owner = type(self).__name__
        return state | {name: picklable(state[name], owner) for name in _NAMES if name in state}

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        with all_callbacks():
            new.__dict__.update(self.__getstate__())
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = memo[id(self)] = type(self).__new__(type(self))
        with all_callbacks():
            state = self.__getstate__()
        for name, value in state.items():
            new.__dict__[name] = deep_copied(value, memo) if name in _NAMES else copy.deepcopy(value, memo)
        return new

    def __sklearn_clone__(self) -> Self:
        bare: Any = copy.copy(self)
        bare.callbacks = None
        new: Self = BaseEstimator.__sklearn_clone__(bare)
        new.callbacks = deep_copied(self.callbacks, {})
        return new
