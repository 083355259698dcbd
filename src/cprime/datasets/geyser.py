"""Old Faithful data, a textbook example, read from a table in the package."""

from importlib import resources

import numpy as np
from sklearn.utils import Bunch


def old_faithful() -> Bunch:
    """Return eruptions of the geyser Old Faithful: the duration of each and the waiting time to the next.

    Returns
    -------
    data : Bunch
        ``data`` (272, 2) float64, both columns in minutes and not standardized;
        ``feature_names``, the list ``["eruptions", "waiting"]``.

    References
    ----------
    A. Azzalini, A. W. Bowman: A look at some data on the Old Faithful geyser. Applied Statistics 39, 1990.
    C. M. Bishop: Pattern Recognition and Machine Learning, Springer, 2006, section 9.1 and appendix A.

    Examples
    --------
    >>> from cprime.datasets import old_faithful
    >>> old_faithful().data[0]
    array([ 3.6, 79. ])
    """
    table = resources.files("cprime.datasets") / "data" / "old_faithful.csv"
    with table.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        data = np.loadtxt(file, delimiter=",", dtype=np.float64)
    return Bunch(data=data, feature_names=names)
