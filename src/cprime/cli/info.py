"""`cprime info`: what is in a model file."""

from pathlib import Path

from cprime import load
from cprime.cli.outputs import print_json
from cprime.cli.summary import print_summary, summary
from cprime.storage import read_header


def info(model: Path, *, as_json: bool) -> None:
    """Run the command."""
    estimator = load(model)
    figures = {
        **summary(estimator),
        "cprime_version": read_header(model)["cprime_version"],
        "params": {
            name: value if isinstance(value, bool | int | float | str | None) else f"array {value.shape}"
            for name, value in estimator.get_params(deep=False).items()
        },
        "bytes": model.stat().st_size,
    }
    if as_json:
        print_json(figures)
    else:
        print_summary(figures)
