"""What the lines of an example say, as numbers."""


def numbers(line: str) -> list[float]:
    """The numbers among the words of a line."""
    return [float(word) for word in line.replace(",", "").split() if word.lstrip("-").replace(".", "", 1).isdigit()]


def row(lines: list[str], name: str) -> list[float]:
    """The numbers of the only row of a table that has this name."""
    (found,) = (line.removeprefix(name) for line in lines if line.startswith(f"{name} "))
    return numbers(found)
