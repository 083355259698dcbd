"""Commands whose help groups options in panels, and types of option values with errors that list the choices."""

import math
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from cprime._utils.messages import bytes_of

PANELS = ("Data", "Model", "Search", "Output")


class Option(click.Option):
    """Command line option that belongs to a panel of the help.

    otherwise: description of the default value for the help
    """

    def __init__(self, *args: Any, panel: str, otherwise: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.panel, self.otherwise = panel, otherwise

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        names = ", ".join(self.opts) + "".join(f" / {name}" for name in self.secondary_opts)
        remark = " [required]" if self.required else f" [default: {self.otherwise}]" if self.otherwise else ""
        return f"{names} {self.metavar}" if self.metavar else names, f"{self.help}{remark}"


class Argument(click.Argument):
    """Positional argument with a line of help."""

    def __init__(self, *args: Any, explained: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.explained = explained

    def get_help_record(self, ctx: click.Context) -> Any:
        return None


class Command(click.Command):
    """Command whose help explains its arguments and lists its options by panel."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{panel: [] for panel in PANELS}, "Other": []}
        for param in self.get_params(ctx):
            if isinstance(param, Argument):
                rows["Arguments"].append((str(param.metavar), param.explained))
            record = param.get_help_record(ctx)
            if record is not None:
                rows[getattr(param, "panel", "Other")].append(record)
        for panel, records in rows.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


class Group(click.Group):
    """Group of all commands of `cprime`; an unknown command name produces an error that suggests a similar one."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.commands[name].get_short_help_str(1000)) for name in self.list_commands(ctx)]
            )

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, command in self.commands.items() if not command.hidden]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = get_close_matches(name, self.list_commands(ctx), 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(self.list_commands(ctx))}."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)


class WholeNumber(click.ParamType):
    """Type of an option value that is an integer in a range."""

    name = "number"

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not _is_whole(value) or int(value) < self.least or (self.most is not None and int(value) > self.most):
            most = "on" if self.most is None else f"to {self.most}"
            self.fail(f"{value!r} is not a whole number from {self.least} {most}.")
        return int(value)


class SizeBound(click.ParamType):
    """Type of an option value that is a number of points, a weight, or "1.2x", a multiple of the mean cluster size."""

    name = "bound"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        text = str(value)
        if _is_whole(text) and int(text) >= 0:
            return int(text)
        if (found := re.fullmatch(r"(\d+(\.\d+)?|\.\d+)(x?)", text)) is None:
            self.fail(f'{value!r} is not a number of points, a weight, or a multiple of the mean size such as "1.2x".')
        return text if found[3] else float(text)


class Amount(click.ParamType):
    """Type of an option value that is a finite, nonnegative number or one of the given words."""

    name = "number"

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if value in self.words:
            return str(value)
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            others = f", nor {_listed(self.words, 'or')}" if self.words else ""
            self.fail(f"{value!r} is not a number from 0 on{others}.")
        return number


class StartName(click.ParamType):
    """Type of an option value that is an initialization: its name, or the path, with suffix, of a file of centers."""

    name = "start"

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = tuple(choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices and not Path(value).suffix:
            self.fail(
                f"{value!r} is neither one of {_listed(self.choices)}, nor a file of centers, such as centers.npy."
            )
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        found = [click.shell_completion.CompletionItem(name) for name in self.choices if name.startswith(incomplete)]
        return found or [click.shell_completion.CompletionItem(incomplete, type="file")]


class CountOr(click.ParamType):
    """Type of an option value that is an integer not below `least`, or one of the given words."""

    name = "count"

    def __init__(self, least: int, *words: str) -> None:
        self.least, self.words = least, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value in self.words or isinstance(value, int):
            return value
        if not _is_whole(value) or int(value) < self.least:
            self.fail(f"{value!r} is not a whole number from {self.least} on, nor {_listed(self.words, 'or')}.")
        return int(value)


class Counts(click.ParamType):
    """Type of a list of numbers of clusters: "10,20,50", or "2:50" or "2:50:4" for 2 to 50 (in steps of 4)."""

    name = "counts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        for part in value.split(","):
            ends = part.split(":")
            if len(ends) > 3 or not all(end.isdecimal() and int(end) > 0 for end in ends):
                self.fail(f"{value!r} is no list of numbers of clusters, such as 10,20,50 or 2:50 or 2:50:4.")
            first, *rest = map(int, ends)
            found += range(first, (rest[0] if rest else first) + 1, rest[1] if len(rest) == 2 else 1)
        if not found:
            self.fail(f"{value!r} has no number of clusters: the first must not be above the last.")
        return tuple(sorted(set(found)))


class Shape(click.ParamType):
    """Type of an image shape: height, width, and 3 for color images, such as "28,28"."""

    name = "shape"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        parts = value.split(",")
        if len(parts) not in (2, 3) or not all(part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is no height and width, such as 28,28 or 32,32,3.")
        return tuple(map(int, parts))


class Size(click.ParamType):
    """Type of an array size, rows x columns, that fits into the address space, such as "1000000x768"."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        parts = value.lower().split("x")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is no rows and columns, such as 1000000x768.")
        rows, columns = map(int, parts)
        if rows * columns > sys.maxsize // 8:  # a float64 array cannot have more values
            self.fail(f"{value!r} is no rows and columns of an array that can exist, such as 1000000x768.")
        return rows, columns


class Bytes(click.ParamType):
    """Type of an amount of memory: "8GB", or a number of bytes."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            bytes_of(value, "it")
        except ValueError as error:
            self.fail(f"{str(error)[0].upper()}{str(error)[1:]}")
        return str(value)


class ColumnNames(click.ParamType):
    """Type of a list of column names, separated by commas."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else tuple(value.split(","))


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None


def _listed(words: Sequence[str], last: str = "and") -> str:
    shown = [repr(word) for word in words]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {last} {shown[-1]}"
