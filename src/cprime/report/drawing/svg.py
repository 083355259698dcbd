"""SVG elements with escaped text and attributes."""

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape


def number(value: float) -> str:
    """Return a coordinate as a text with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value == value else "0"


def element(name: str, *children: Any, **attributes: Any) -> Markup:
    """Return the element ``<name …>children</name>`` with escaped children and attributes.

    In names of attributes, _ becomes - and a trailing _ is dropped. Attributes with the value None are omitted.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value) if isinstance(value, float) else value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(str(escape(child)) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")


def joined(parts: Iterable[Markup]) -> Markup:
    """Return SVG elements, one after the other, as one markup string."""
    return Markup("").join(parts)


def drawing(width: float, height: float, label: str, *children: Any, **attributes: Any) -> Markup:
    """Return an svg element that fills its container, with `label` as description for screen readers."""
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
    """Return an SVG element, such as "circle" (its `name`), with `title` as its tooltip."""
    return element(name, element("title", title), **attributes)
