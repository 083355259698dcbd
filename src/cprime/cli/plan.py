"""`cprime plan`: estimate of the memory and time for a fit of data, or of an array of a given shape."""

from typing import Any

import click
from rich.console import Console

from cprime.cli.files import Request, opened
from cprime.cli.fit import FitOptions, estimator_of
from cprime.cli.outputs import print_json
from cprime.estimators.planning import plan as planned


def plan(
    path: str | None, shape: tuple[int, int] | None, request: Request, options: FitOptions, *, as_json: bool
) -> None:
    """Run `cprime plan`: print the estimated memory and time of a fit."""
    if (path is None) == (shape is None):
        raise click.UsageError("either DATA or --shape is needed, and not both.")
    estimator = estimator_of(options)
    X: Any = shape if path is None else opened(path, request).source
    found = planned(estimator, X, dtype=request.dtype or "float32")
    if as_json:
        print_json(found.as_dict())
    else:
        Console().print(repr(found), highlight=False, markup=False, soft_wrap=True)
