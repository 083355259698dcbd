"""The measures, one per file. Each module has

- `add_arguments(parser)`: adds its options;
- `measure(options)`: iterates over lists of records, one for each case once it is done;
- `report(records)`: returns its tables and findings as Markdown;
- `figures(records)`: returns its figures by name.
"""

from types import ModuleType

from benchmarks.measures import (
    bounds,
    combine,
    cosine,
    embeddings,
    files,
    growth,
    inverted_files,
    iteration,
    larger,
    many,
    memory,
    million,
    online,
    optima,
    residual,
    scale,
    setup_cost,
    sizes,
    small,
    starts,
    survival,
    time_to_quality,
    truncation,
    update,
    workers,
)

MEASURES: dict[str, ModuleType] = {
    "time-to-quality": time_to_quality,
    "iteration": iteration,
    "growth": growth,
    "memory": memory,
    "setup": setup_cost,
    "optima": optima,
    "small": small,
    "many": many,
    "cosine": cosine,
    "embeddings": embeddings,
    "million": million,
    "scale": scale,
    "larger": larger,
    "survival": survival,
    "inverted-files": inverted_files,
    "residual": residual,
    "online": online,
    "files": files,
    "starts": starts,
    "truncation": truncation,
    "combine": combine,
    "sizes": sizes,
    "update": update,
    "bounds": bounds,
    "workers": workers,
}
