"""Readers of public data sets in their original files, which the user has downloaded."""

import os

import numpy as np
from sklearn.utils import Bunch


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
    table = np.loadtxt(path, delimiter=separator, dtype=np.float64, ndmin=2)
    if table.shape[1] != n_columns:
        raise ValueError(f"{path} must have {n_columns} columns, got {table.shape[1]}.")
    return table
