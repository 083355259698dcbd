"""Report of a fitted model as one HTML page to view, mail and print: `estimator.report(X).save("report.html")`.

`evidence.py` reads the rows, a random sample if there are many, and compares them with all components. One file for
each section of the page computes frozen values from this, without HTML. `layout.py` places the clusters on the map.
`drawing` converts numbers and names to SVG and pictures, and escapes names. `page.py` fills `templates` and returns one
page, with style and script, that loads nothing from elsewhere. This is the only package that is imported from below:
the estimators' method imports it when it is called. Needs Jinja2 and Pillow.
"""

try:
    import jinja2  # noqa: F401
    import PIL  # noqa: F401
except ImportError as error:
    library = "pillow" if error.name == "PIL" else "jinja2"
    raise ImportError(f"a report needs {library}, which is missing: pip install {library}") from error

from cprime.report.lights import Light, State
from cprime.report.making import Report, report_of
from cprime.report.page import Names
from cprime.report.profiles import ColumnProfile, profile

__all__ = ["ColumnProfile", "Light", "Names", "Report", "State", "profile", "report_of"]


def __dir__() -> list[str]:
    return __all__
