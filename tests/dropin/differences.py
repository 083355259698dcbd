"""Lists of scikit-learn's own tests that do not concern our classes, that must fail, or that run scikit-learn's code.

A key is an `fnmatch` pattern: `test_name` matches all cases of a test, `test_name[[]case]` matches one case.
"""

# Tests of private functions of scikit-learn, which use none of our classes and are not counted.
NOT_OURS = (
    "test_relocate_empty_clusters*",
    "test_minibatch_update_consistency*",
    "test_minibatch_reassign[[]*",
    "test_euclidean_distance*",
    "test_inertia*",
    "test_is_same_clustering",
    "test_suffstat_sk_*",
    "test_gaussian_suffstat_sk_spherical*",
    "test_compute_log_det_cholesky*",
    "test_gaussian_mixture_log_probabilities",
)

# Tests that must fail: one that passes must be removed from this table.
DIFFERENT = {
    "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": (
        "counts the calls of a private function of scikit-learn's EM, which does not run"
    ),
}

# Tests in which scikit-learn's own code runs, according to the log.
SERVED_THERE = {
    "test_init_means_not_duplicated*": "max_iter=0 fits nothing",
    "test_max_iter_zero": "max_iter=0 fits nothing",
    "test_gaussian_mixture_array_api_compliance*": "X is an array of another library",
    "test_kmeans_plusplus_norms*": "x_squared_norms is given",
    "test_kmeans_plusplus_wrong_params*": "x_squared_norms is given",
}
