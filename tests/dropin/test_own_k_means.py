"""`sklearn.cluster.tests.test_k_means` with this library's classes."""

import pytest
from their_tests import functions_of

pytestmark = [
    pytest.mark.usefixtures("served_here"),
    pytest.mark.filterwarnings("ignore"),  # scikit-learn's tests decide which warnings are errors
]
globals().update(functions_of("sklearn.cluster.tests.test_k_means"))
