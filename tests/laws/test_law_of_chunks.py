"""Law: results do not depend on where rows and active sets are stored; chunks change them by rounding only."""

import numpy as np
import pytest
from registry import (
    POOR_FITS_PASS,
    answers,
    check_close,
    check_same_bits,
    configurations,
    estimator_of,
    executed,
    fitted,
    points_of,
    rounding_of,
    start_of,
)

from cprime import Memory, open_data

pytestmark = POOR_FITS_PASS


@pytest.mark.parametrize("each", configurations(lambda each: each.rows != "sparse"))
def test_places_change_no_bit_and_chunks_only_the_order_of_sums(each, tmp_path):
    X, weights = points_of(each)
    given = executed(each, X)
    here = estimator_of(each).fit(given, sample_weight=weights)
    np.save(tmp_path / "X.npy", X)
    there = [np.load(tmp_path / "X.npy", "r")]
    if each.execution != "array":
        there = [open_data(tmp_path / "X.npy", chunk_rows=len(X) // 3 + 1)]
    elif "chunks" in each.options.executions:
        there.append(tmp_path / "X.npy")
    fits = [estimator_of(each).fit(rows, sample_weight=weights) for rows in there]
    if hasattr(here, "_has_plan") and each.execution != "dask":
        (tmp_path / "spill").mkdir()
        fits.append(estimator_of(each, max_memory=Memory(spill=tmp_path / "spill")).fit(given, sample_weight=weights))
    for found in fits:
        check_same_bits(fitted(found), fitted(here))
    check_close(*(answers(here, rows, ("predict", "score", "encode")) for rows in (given, X)), rounding_of(each))
    if each.execution == "chunks" and each.estimator != "ResidualKMeans":
        start = start_of(each, X, weights) | {"max_iter": 1}
        whole, parts = (estimator_of(each, **start).fit(rows, sample_weight=weights) for rows in (X, given))
        check_close(fitted(parts), fitted(whole), rounding_of(each) / 100)
