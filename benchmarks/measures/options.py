"""Options that several measures take, and the cases that they describe."""

import argparse
from collections.abc import Iterator

from benchmarks.data import SOURCES, Data, MissingData, load
from benchmarks.peers import PEERS, of_model
from benchmarks.records import Record
from cprime._utils.threads import resolve_threads

MIXTURES = ("mixture", "mixture-diag", "mixture-full")  # models evaluated by their likelihood


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def counts(text: str) -> tuple[int, ...]:
    """Parse positive numbers separated by commas, in increasing order."""
    values = tuple(positive(part) for part in text.split(","))
    if list(values) != sorted(set(values)):
        raise argparse.ArgumentTypeError(f"must be increasing, got {text}")
    return values


def seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be positive, got {value}")
    return value


def peers(text: str) -> list[str]:
    names = text.split(",")
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise argparse.ArgumentTypeError(f"must be among {', '.join(PEERS)}, got {', '.join(unknown)}")
    return names


def threads(text: str) -> int:
    value, most = positive(text), resolve_threads(None)
    if value > most:
        raise argparse.ArgumentTypeError(f"must be at most the {most} processors there are, got {value}")
    return value


def add_threads(parser: argparse.ArgumentParser) -> None:
    most = resolve_threads(None)
    parser.add_argument("--threads", type=threads, default=most, help=f"threads of every peer (default: {most})")


def add_data(parser: argparse.ArgumentParser, default: list[str]) -> None:
    parser.add_argument(
        "--data",
        action="append",
        metavar="NAME|FILE",
        help=f"{', '.join(SOURCES)}, or a file of one's own; may be repeated (default: {', '.join(default)})",
    )
    parser.add_argument("-C", "--clusters", type=positive, help="number of clusters (default: by data set)")
    parser.set_defaults(default_data=default)


def add_peers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peers", type=peers, metavar="A,B,…", help="run these peers only; `list` names them")
    parser.add_argument(
        "--limit", type=seconds, default=600.0, metavar="SECONDS", help="end a fit that takes longer (default: 600)"
    )


def add_model(parser: argparse.ArgumentParser, *models: str) -> None:
    parser.add_argument("--model", choices=models, default=models[0], help=f"what is fitted (default: {models[0]})")


def add_repetitions(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--repetitions", type=positive, default=default, help=f"interleaved rounds (default: {default})"
    )


def chosen(options: argparse.Namespace, default: list[str] | None = None) -> list[str]:
    """Return the requested peers, by default all of the model; raise ValueError if a peer does not belong to it."""
    if not options.peers:
        return of_model(options.model) if default is None else default
    others = [name for name in options.peers if PEERS[name].model != options.model]
    if others:
        raise ValueError(f"--peers: {', '.join(others)} cannot be run with --model {options.model}")
    return options.peers


def cases(options: argparse.Namespace, measure: str) -> Iterator[tuple[Data | None, int, Record]]:
    """Yield the data of each case, C, and the common part of its records; the data are None if missing."""
    for name in options.data or options.default_data:
        common: Record = {"measure": measure, "data": name, "model": getattr(options, "model", "k-means")}
        try:
            data = load(name)
        except MissingData as error:
            yield None, 0, {**common, "skipped": str(error)}
            continue
        N, D = data.X.shape
        C = data.clusters(options.clusters)
        common |= {"data": data.name, "N": N, "D": D, "C": C, "threads": options.threads}
        yield data, C, common
