"""Address of an estimator's page in the documentation, to which its HTML representation in a notebook links."""

import os
from functools import cache
from importlib import metadata


def address() -> str:
    """Return the address of the documentation without a slash at its end, or "" if none is known.

    The environment variable CPRIME_DOCS has precedence, for example `file:///…/build/docs` after `make docs`. Without
    it, the address is the documentation URL in the metadata of the installed package.
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
    """Mixin before scikit-learn's `BaseEstimator` that links the HTML representation to the estimator's API page."""

    _doc_link_module = "cprime"

    @property
    def _doc_link_template(self) -> str:
        site = address()
        return f"{site}/generated/{{package}}.{{name}}.html" if site else ""

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        package = "cprime.sklearn" if type(self).__module__.startswith("cprime.sklearn.") else "cprime"
        return {"package": package, "name": type(self).__name__}
