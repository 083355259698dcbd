"""Which of scikit-learn's own tests are not of our classes, which fail and why, and which scikit-learn's code serves.

A row is a pattern of names, as `fnmatch` has it: `test_name` is all cases of a test, `test_name[[]case]` is one.
"""

# Tests of functions that scikit-learn keeps to itself; they see nothing of ours and count for nothing.
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

# Tests that fail, and must fail: one that passes is to be taken out.
DIFFERENT = {
    "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": (
        "counts the calls of a private function of scikit-learn's EM, which does not run"
    ),
}

# Tests in which scikit-learn's own code runs, as the log says.
SERVED_THERE = {
    "test_init_means_not_duplicated*": "max_iter=0 fits nothing",
    "test_max_iter_zero": "max_iter=0 fits nothing",
    "test_gaussian_mixture_array_api_compliance*": "X is an array of another library",
    "test_kmeans_plusplus_norms*": "x_squared_norms is given",
    "test_kmeans_plusplus_wrong_params*": "x_squared_norms is given",
}
