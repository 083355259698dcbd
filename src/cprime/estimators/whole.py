"""Fits that are whole or have not been."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def whole(fit: F) -> F:
    """A method after which all fitted attributes are new, or, where it raises or is interrupted, all as they were."""

    @wraps(fit)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__ = before  # in one step: a second interruption finds either
            raise

    return run  # type: ignore[return-value]
