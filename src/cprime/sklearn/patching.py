"""This library in the place of scikit-learn's classes, for programs that are not to be edited."""

import sys
from importlib import import_module
from types import ModuleType

_NAMES = {
    "sklearn.cluster": ("BisectingKMeans", "KMeans", "MiniBatchKMeans", "k_means", "kmeans_plusplus"),
    "sklearn.mixture": ("GaussianMixture",),
}
_replaced: list[tuple[ModuleType, str, object]] = []


def patch() -> None:
    """Put the names of `cprime.sklearn` in the place of scikit-learn's, until `unpatch`.

    ``from sklearn.cluster import KMeans`` then gives this library's, and scikit-learn's own modules use it. Modules
    outside scikit-learn that have imported a name before keep it: patch first. Classes stay where they are defined, so
    that pickles of both are read. A second call does nothing.

    Examples
    --------
    >>> import cprime.sklearn
    >>> cprime.sklearn.patch()
    >>> from sklearn.cluster import KMeans
    >>> KMeans.__module__
    'cprime.sklearn.kmeans'
    >>> cprime.sklearn.unpatch()
    """
    if _replaced:
        return
    ours = import_module("cprime.sklearn")
    for package, names in _NAMES.items():
        for name in names:
            theirs = getattr(import_module(package), name)
            for module in _users(name, theirs):
                _replaced.append((module, name, theirs))
                setattr(module, name, getattr(ours, name))


def unpatch() -> None:
    """Put scikit-learn's own names back.

    Examples
    --------
    >>> import cprime.sklearn
    >>> cprime.sklearn.patch()
    >>> cprime.sklearn.unpatch()
    >>> from sklearn.cluster import KMeans
    >>> KMeans.__module__
    'sklearn.cluster._kmeans'
    """
    while _replaced:
        module, name, theirs = _replaced.pop()
        setattr(module, name, theirs)


def _users(name: str, theirs: object) -> list[ModuleType]:
    """The modules of scikit-learn that have the name, but for the one that defines it."""
    home = getattr(theirs, "__module__", None)
    return [
        module
        for path, module in list(sys.modules.items())
        if path.split(".")[0] == "sklearn" and path != home and vars(module).get(name) is theirs
    ]
