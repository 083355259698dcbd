"""Real data: Old Faithful, which is part of the package, and readers of the original files of public data sets."""

import os
from importlib import resources

import numpy as np
from sklearn.utils import Bunch

from cprime._utils.arguments import check_path


def read_song(path: str | os.PathLike[str]) -> Bunch:
    """Read SONG, the YearPredictionMSD data of the UCI repository: audio features of 515,345 songs.

    Parameters
    ----------
    path : str or path-like
        The file YearPredictionMSD.txt: on each line the year and 90 features, with commas between.

    Returns
    -------
    data : Bunch
        ``data`` (n, 90) float32, the features; ``target`` (n,) int32, the years.

    Raises
    ------
    ValueError
        If a line has another number of columns.

    References
    ----------
    Bertin-Mahieux (2011), *Year Prediction MSD*, UCI Machine Learning Repository.

    Examples
    --------
    >>> from cprime.datasets import read_song
    >>> read_song("YearPredictionMSD.txt").data.shape  # doctest: +SKIP
    (515345, 90)
    """
    table = _table(path, ",", 91)
    return Bunch(data=table[:, 1:].astype(np.float32), target=table[:, 0].astype(np.int32))


def read_kdd(path: str | os.PathLike[str]) -> Bunch:
    """Read KDD, the protein homology data of the KDD Cup 2004: 74 features of 145,751 pairs of proteins.

    Parameters
    ----------
    path : str or path-like
        The file bio_train.dat: on each line two numbers of the pair, its class and 74 features, with tabs between.

    Returns
    -------
    data : Bunch
        ``data`` (n, 74) float32, the features; ``target`` (n,) int32, 1 for homologous pairs.

    Raises
    ------
    ValueError
        If a line has another number of columns.

    References
    ----------
    Caruana, Joachims & Backstrom (2004), *KDD-Cup 2004: results and analysis*.

    Examples
    --------
    >>> from cprime.datasets import read_kdd
    >>> read_kdd("bio_train.dat").data.shape  # doctest: +SKIP
    (145751, 74)
    """
    table = _table(path, "\t", 77)
    return Bunch(data=table[:, 3:].astype(np.float32), target=table[:, 2].astype(np.int32))


def _table(path: str | os.PathLike[str], separator: str, n_columns: int) -> np.ndarray:
    """Return the numbers of a text file as an array with `n_columns` columns."""
    table = np.loadtxt(check_path(path, "path"), delimiter=separator, dtype=np.float64, ndmin=2)
    if table.shape[1] != n_columns:
        raise ValueError(f"{path} must have {n_columns} columns, got {table.shape[1]}.")
    return table


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
