"""Report of a fitted model as one HTML page to view, mail and print: `estimator.report(X).save("report.html")`.

`evidence.py` reads the rows. One file for each section of the page computes plain values from the rows. `drawing`
converts the values to SVG and pictures. `page.py` fills the HTML template. Needs Jinja2 and Pillow:
``pip install cprime[report]``.
"""

try:
    import jinja2  # noqa: F401
    import PIL  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"a report needs {'Pillow' if error.name == 'PIL' else 'Jinja2'}, which is missing: pip install cprime[report]"
    ) from error

from cprime.report.lights import Light, State
from cprime.report.making import Report, report_of
from cprime.report.page import Names

__all__ = ["Light", "Names", "Report", "State", "report_of"]


def __dir__() -> list[str]:
    return __all__
