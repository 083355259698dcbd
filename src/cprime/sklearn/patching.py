"""Replacement of scikit-learn's classes by those of this library, for programs that are not to be edited."""

import sys
from importlib import import_module
from types import ModuleType

_NAMES = {
    "sklearn.cluster": ("BisectingKMeans", "KMeans", "MiniBatchKMeans", "k_means", "kmeans_plusplus"),
    "sklearn.mixture": ("BayesianGaussianMixture", "GaussianMixture"),
}
_replaced: list[tuple[ModuleType, str, object]] = []


def patch() -> None:
    """Replace scikit-learn's names by those of `cprime.sklearn`, until `unpatch`.

    ``from sklearn.cluster import KMeans`` then imports this library's class, and scikit-learn's own modules use this
    class. Modules outside scikit-learn that imported a name before still use the original, so call `patch` first. The
    modules that define scikit-learn's classes are not changed, so pickles of both libraries' estimators can be read. A
    second call has no effect.

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
    """Restore scikit-learn's own names.

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
    """Return scikit-learn's modules in which `name` is the object `theirs`, except the module that defines it."""
    home = getattr(theirs, "__module__", None)
    return [
        module
        for path, module in list(sys.modules.items())
        if path.split(".")[0] == "sklearn" and path != home and vars(module).get(name) is theirs
    ]
