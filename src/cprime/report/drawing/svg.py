"""Elements of SVG, with every text and attribute escaped."""

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape


def number(value: float) -> str:
    """A coordinate: two digits behind the point at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value == value else "0"


def element(name: str, *children: Any, **attributes: Any) -> Markup:
    """``<name …>children</name>``; underscores of an attribute become dashes, the last is dropped; None is none."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value) if isinstance(value, float) else value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(str(escape(child)) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")


def joined(parts: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("").join(parts)


def drawing(width: float, height: float, label: str, *children: Any, **attributes: Any) -> Markup:
    """An svg that is as wide as its place, with a description for those who hear it."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=label,
        **attributes,
    )


def text(x: float, y: float, content: str, class_: str = "tick", anchor: str = "start", **more: Any) -> Markup:
    return element("text", content, x=float(x), y=float(y), class_=class_, text_anchor=anchor, **more)


def titled(name: str, title: str, **attributes: Any) -> Markup:
    """A shape that says what it is when it is pointed at."""
    return element(name, element("title", title), **attributes)
