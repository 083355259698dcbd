"""Commands whose help groups options in panels, and conversions of option values with errors that show examples."""

import re
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.types import OptionHelpExtra

from cprime._utils.messages import bytes_of

PANELS = ("Data", "Model", "Search", "Output")


class Option(click.Option):
    """Command line option that belongs to a panel (titled group) of the help."""

    def __init__(self, *args: Any, panel: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.panel = panel

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        extra = super().get_help_extra(ctx)
        return {**extra, "default": self.show_default} if isinstance(self.show_default, str) else extra


class Command(click.Command):
    """Command whose help lists its options by panel. "-" is standard input or output, each for one purpose."""

    def invoke(self, ctx: click.Context) -> Any:
        given = ctx.params
        if str(given.get("output")) == "-" and given.get("as_json"):
            raise click.UsageError("--json and -o - both want standard output: give the output a file.", ctx)
        if str(given.get("model")) == "-" and "-" in given["data"]:
            raise click.UsageError("MODEL and DATA are both - (standard input): give one of them a file.", ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {panel: [] for panel in (*PANELS, "Other")}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                rows[getattr(param, "panel", "Other")].append(record)
        for panel, records in rows.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


class Group(click.Group):
    """Group of all commands of `cprime`, listed in the order of their definition."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class WholeNumber(click.IntRange):
    """Type of an option value that is an integer in a range."""

    name = "whole number"


class Number(click.FloatRange):
    """Type of an option value that is a real number in a range."""

    name = "number"


class NumberOr(click.ParamType):
    """Type of an option value that is a number of a given type, or one of the given words."""

    name = "number"

    def __init__(self, number: click.ParamType, *words: str) -> None:
        self.number, self.words = number, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self.words:
            return value
        try:
            return self.number.convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message.rstrip('.')}, nor {' or '.join(map(repr, self.words))}.")


def size_bound(text: str) -> float | str:
    """Convert a number of points or a weight to a number; return "1.2x", a multiple of the mean size, unchanged."""
    if (found := re.fullmatch(r"(\d+(\.\d+)?|\.\d+)(x?)", text, re.ASCII)) is None:
        raise ValueError(
            f'{text!r} is not a number of points, a weight, or a multiple of the mean size such as "1.2x".'
        )
    return text if found[3] else int(text) if text.isdecimal() else float(text)


def cluster_counts(text: str) -> tuple[int, ...]:
    """Convert a list of numbers of clusters, "10,20,50", or "2:50" or "2:50:4" for 2 to 50 (in steps of 4)."""
    found: set[int] = set()
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) > 3 or not _are_positive(ends):
            raise ValueError(f"{text!r} is no list of numbers of clusters, such as 10,20,50 or 2:50 or 2:50:4.")
        first, *rest = map(int, ends)
        found |= set(range(first, (rest[0] if rest else first) + 1, rest[1] if len(rest) == 2 else 1))
    if not found:
        raise ValueError(f"{text!r} has no number of clusters: the first must not be above the last.")
    return tuple(sorted(found))


def image_shape(text: str) -> tuple[int, ...]:
    """Convert the height and width of images, and 3 for color images, such as "28,28"."""
    parts = text.split(",")
    if len(parts) not in (2, 3) or not _are_positive(parts):
        raise ValueError(f"{text!r} is no height and width, such as 28,28 or 32,32,3.")
    return tuple(map(int, parts))


def array_shape(text: str) -> tuple[int, int]:
    """Convert rows x columns of an array that fits into the address space, such as "1000000x768"."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not _are_positive(parts):
        raise ValueError(f"{text!r} is no rows and columns, such as 1000000x768.")
    rows, columns = map(int, parts)
    if rows * columns > sys.maxsize // 8:  # a float64 array cannot have more values
        raise ValueError(f"{text!r} is no rows and columns of an array that can exist, such as 1000000x768.")
    return rows, columns


def memory_size(text: str) -> str:
    """Check an amount of memory: "8GB", or a number of bytes."""
    bytes_of(text, "the value")
    return text


def column_names(text: str) -> tuple[str, ...]:
    """Convert a list of column names, separated by commas."""
    return tuple(text.split(","))


def _are_positive(texts: Sequence[str]) -> bool:
    return all(text.isdecimal() and int(text) > 0 for text in texts)
