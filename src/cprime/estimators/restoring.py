"""Decorator of methods that fit: fitted attributes change together or not at all."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from cprime.kernels import computing

F = TypeVar("F", bound=Callable[..., Any])


def restore_on_error(fit: F) -> F:
    """Make a method restore all attributes if it raises or is interrupted, and compute as `computing` does."""

    @wraps(fit)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            with computing(self.n_threads):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = before  # a single assignment, so that a second interruption cannot leave a mixture of both
            raise

    return run  # type: ignore[return-value]
