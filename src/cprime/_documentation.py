"""Where the documentation stands: the address of an estimator's page, which its picture in a notebook links to."""

import os
from functools import cache
from importlib import metadata


def address() -> str:
    """The address of the site without a slash at its end, "" if none is known.

    That is what CPRIME_DOCS says, `file:///…/build/docs` for one built by `make docs`; else the URL that the installed
    package names as its documentation.
    """
    return os.environ.get("CPRIME_DOCS", _of_package()).rstrip("/")


@cache
def _of_package() -> str:
    for line in metadata.metadata("cprime").get_all("Project-URL") or ():
        label, _, url = line.partition(", ")
        if label.lower() == "documentation":
            return url
    return ""


class Documented:
    """Mixin before scikit-learn's `BaseEstimator`: the link of its representation in HTML is to the page of the API."""

    _doc_link_module = "cprime"

    @property
    def _doc_link_template(self) -> str:
        site = address()
        return f"{site}/generated/{{room}}.{{name}}.html" if site else ""

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        room = "cprime.sklearn" if type(self).__module__.startswith("cprime.sklearn.") else "cprime"
        return {"room": room, "name": type(self).__name__}
