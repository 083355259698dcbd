"""Decorator of methods that fit: fitted attributes change together or not at all."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from cprime.kernels import computing

F = TypeVar("F", bound=Callable[..., Any])


def restore_on_error(fit: F) -> F:
    """Return the method `fit` in a wrapper that restores all attributes if the method raises or is interrupted.

    The method runs in the context `computing`, which sets the number of threads.
    """

    @wraps(fit)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            with computing(self.n_threads):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = before  # one assignment, so that a second interruption cannot mix old and new attributes
            raise

    return run  # type: ignore[return-value]
