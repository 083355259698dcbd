"""Benchmarks with few clusters: data with known optima, and small fits compared with scikit-learn."""

import json

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.groups import GROUPS
from benchmarks.measures.optima import misplaced


@pytest.mark.parametrize("name", GROUPS)
def test_groups_are_drawn_about_their_centers(name):
    groups, again = (GROUPS[name](np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(groups.X, again.X)
    if groups.centers is None:
        return
    assert groups.centers.shape == (groups.n_clusters, groups.X.shape[1])
    squares = np.square(groups.X[::5, np.newaxis] - groups.centers).sum(axis=2)
    assert set(squares.argmin(axis=1)) == set(range(groups.n_clusters))


def test_misplaced_centers_are_those_without_a_partner():
    reference = np.array([[0.0], [1.0], [10.0], [11.0]])
    assert misplaced(reference[::-1] + 0.1, reference) == 0
    assert misplaced(np.array([[0.0], [1.0], [10.4], [10.6]]), reference) == 0
    assert misplaced(np.array([[0.0], [0.1], [0.9], [10.5]]), reference) == 1
    assert misplaced(np.array([[0.0], [0.1], [0.2], [0.3]]), reference) == 3


def test_small_fits_are_timed_beside_the_peer(tmp_path, capsys):
    output = tmp_path / "results.jsonl"
    main(["small", "--only", "iris cprime.KMeans", "--repetitions", "2", "--output", str(output)])
    (record,) = [json.loads(line) for line in output.read_text().splitlines()[1:]]
    ratio = np.median(np.divide(record["seconds"], record["peer_seconds"]))
    assert f"| {ratio:.2f} |" in capsys.readouterr().out


def test_many_problems_are_timed_beside_loops(tmp_path, capsys):
    output = tmp_path / "results.jsonl"
    sizes = "--problems 5 --loop 2 --rows 40 --features 2 --clusters 3 --repetitions 2 --threads 1"
    main(["many", *sizes.split(), "--output", str(output)])
    ours, *loops = [json.loads(line) for line in output.read_text().splitlines()[1:]]
    assert [record["peer"] for record in loops] == ["cprime.KMeans", "sklearn.cluster.KMeans"]
    ratio = np.median(np.divide(loops[0]["seconds"], ours["seconds"]))
    assert f" | {ratio:.1f} | " in capsys.readouterr().out


@pytest.mark.long
def test_the_optimum_is_where_the_drawn_centers_lead(tmp_path, capsys):
    output = tmp_path / "results.jsonl"
    main(["optima", "--data", "unbalanced", "--peers", "cprime", "--repetitions", "2", "--output", str(output)])
    jumps, lloyd = [json.loads(line) for line in output.read_text().splitlines()[1:]]
    assert max(jumps["value"]) <= jumps["best"] * 1.0001
    assert [extra["misplaced"] for extra in jumps["extra"]] == [0, 0]
    assert min(lloyd["value"]) >= jumps["best"] == lloyd["best"]
    assert "| cprime (default) | 2 | 0.0000 |" in capsys.readouterr().out


def test_residual_codes_are_compared_with_faiss(tmp_path, monkeypatch, capsys):
    pytest.importorskip("faiss", reason="faiss is not installed")
    monkeypatch.setattr("benchmarks.blas.fastest", lambda distribution, n_threads: "")  # omits a minute of trials
    file, output = tmp_path / "points.npy", tmp_path / "results.jsonl"
    np.save(file, np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32))
    command = ["residual", "--data", str(file), "-C", "16", "--levels", "3", "--repetitions", "2"]
    main([*command, "--output", str(output)])
    ours, _, theirs = [json.loads(line) for line in output.read_text().splitlines()[1:]]
    assert (ours["N"], ours["held_out"]) == (2700, 300)
    assert np.mean(ours["error"]) / np.mean(theirs["error"]) == pytest.approx(1, abs=0.05)
    assert "| times as fast as faiss |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["residual", "--data", str(file), "-C", "17", "--output", str(output)])
    assert "-C must be a power of two" in capsys.readouterr().err


@pytest.mark.parametrize(("model", "unit"), [("k-means", "J above, %"), ("mixture-full", "nats per row below")])
def test_combined_models_are_compared_with_a_fit_of_all(model, unit, tmp_path, capsys):
    output = tmp_path / "results.jsonl"
    small = ("--rows", "300", "--shards", "3", "-D", "2", "-C", "3", "--of-shard", "3")
    main(["combine", "--model", model, *small, "--output", str(output)])
    records = [json.loads(line) for line in output.read_text().splitlines()[1:]]
    assert [record["start"] for record in records] == ["own", "common"]
    assert unit in capsys.readouterr().out
    for record in records:
        assert record["value"] == pytest.approx(record["whole"], rel=0.2)


def test_bounded_sizes_are_compared_with_the_free_fit(tmp_path, capsys):
    output, X = tmp_path / "results.jsonl", np.random.default_rng(0).integers(0, 256, size=(600, 3))
    np.save(tmp_path / "x.npy", X.astype(np.uint8))
    command = ["sizes", "--data", str(tmp_path / "x.npy"), "-C", "12", "--repetitions", "1", "--largest", "1"]
    main([*command, "--output", str(output)])
    (record,) = [json.loads(line) for line in output.read_text().splitlines()[1:]]
    assert record["largest"] <= 1.2
    assert f"| {record['error'] / record['free_error'] - 1:+.2%} |" in capsys.readouterr().out


def test_updates_are_compared_with_new_fits(tmp_path, capsys):
    output, X = tmp_path / "results.jsonl", np.random.default_rng(0).normal(size=(630, 3))
    np.save(tmp_path / "x.npy", X)
    command = ["update", "--data", str(tmp_path / "x.npy"), "-C", "6", "--repetitions", "1", "--output", str(output)]
    main(command)
    (record,) = [json.loads(line) for line in output.read_text().splitlines()[1:]]
    assert record["N"] == 600
    assert record["same"] > 0.8
    assert f"| {record['same']:.1%} |" in capsys.readouterr().out


def test_lower_bounds_are_below_the_fits(tmp_path, capsys):
    output = tmp_path / "results.jsonl"
    sizes = ("--points", "60", "-D", "2", "-C", "3", "--distances", "9,0", "--limit", "0.2", "--threads", "1")
    main(["bounds", *sizes, "--output", str(output)])
    records = [json.loads(line) for line in output.read_text().splitlines()[1:]]
    assert [record["C"] for record in records] == [2, 3, 10, 3, 3]
    assert all(0 < record["value"] <= record["inertia"] for record in records)
    assert f"| {100 * records[-1]['gap']:.3g} |" in capsys.readouterr().out
