"""Benchmark commands from end to end on small data: records, tables, figures, the page, and errors of bad arguments."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.measures import MEASURES, growth, time_to_quality
from benchmarks.peers import PEERS
from benchmarks.profiles import PROFILES
from benchmarks.quality import inertia
from benchmarks.records import read
from benchmarks.rounds import ratios, spread

pytestmark = pytest.mark.usefixtures("own_choice_of_kernels", "loaded_once")

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def output(tmp_path):
    return tmp_path / "results.jsonl"


def measured(output) -> list[dict]:
    return [record for record in read(output) if record["measure"] != "machine"]


@pytest.mark.long
def test_time_to_quality_records_what_was_found(file, points, output, capsys):
    command = ["time-to-quality", "--data", str(file), "-C", "20", "--repetitions", "2", "--iterations", "1,5"]
    main([*command, "--peers", "cprime,cprime-lloyd,sklearn-lloyd", "--output", str(output)])
    header = read(output)[0]
    assert header["measure"] == "machine"
    assert header["versions"]["scikit-learn"]
    assert header["sgemm_gflops"] > 0
    records = measured(output)
    assert {record["peer"] for record in records} == {"cprime", "cprime-lloyd", "sklearn-lloyd"}
    for record in records:
        assert (record["N"], record["D"], record["C"]) == (600, 40, 20)
        assert len(record["seconds"]) == len(record["value"]) == 2
        assert record["command"].startswith("time-to-quality --data")
        assert "--output" not in record["command"]
        assert all(0 < value < inertia(points, points.mean(axis=0, keepdims=True)) for value in record["value"])
        np.testing.assert_allclose(record["value"], record["reported"], rtol=1e-4)
    lloyd = {r["peer"]: r["value"] for r in records if r["settings"].get("max_iter") == 5 and r["peer"] != "cprime"}
    np.testing.assert_allclose(lloyd["cprime-lloyd"], lloyd["sklearn-lloyd"], rtol=1e-3)
    text = capsys.readouterr().out
    assert "| cprime (default) |" in text
    assert "The reference is sklearn-lloyd (max_iter=5, tol=0)" in text
    assert (output.parent / "results-k-means-points.npy-20.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("command", "heading"),
    [
        ("time-to-quality --model mixture -C 6 --peers cprime-em,sklearn-mixture --iterations 2 --repetitions 1", "L"),
        ("time-to-quality --model seeding -C 6 --peers cprime-two-level,cprime-greedy --repetitions 1", "Starts"),
        ("iteration -C 20 --peers cprime-lloyd,cprime-graph --repetitions 1 --iterations 2", "One read of X by"),
        ("growth --along C --values 5,20 --peers cprime --iterations 2", "exponent"),
        ("growth --along N --values 100,600 -C 5 --peers cprime-lloyd --iterations 2", "N = 600"),
        ("memory -C 20 --peers cprime --iterations 2", "MB above the data"),
        ("truncation -C 18 --points 400", "are at most 0.02 nats below exact EM"),
        ("setup -C 3 --peers cprime --repetitions 1 --calls 3", "first call, ms"),
    ],
)
def test_measures_run_and_the_page_shows_them(command, heading, file, output, tmp_path, capsys):
    name, *rest = command.split()
    main([name, "--data", str(file), *rest, "--output", str(output)])
    assert heading in capsys.readouterr().out
    records = measured(output)
    assert records
    assert not [record for record in records if "left_out" in record]
    assert all(np.isfinite(value) for record in records for value in record["value"])
    page = tmp_path / "docs" / "page.md"
    main(["page", str(output), "--output", str(page)])
    text = page.read_text(encoding="utf-8")
    assert MEASURES[name].TITLE in text
    assert f"python -m benchmarks {records[0]['command']}" in text
    assert heading in text
    assert "results.jsonl" in text
    for line in text.splitlines():
        if line.startswith("<img"):
            assert (page.parent / line.split('"')[1]).exists()


@pytest.mark.long
def test_million_in_small_tells_how_good_it_is(output, capsys):
    main(["million", "--points", "20000", "-C", "400", "-D", "4", "--output", str(output)])
    (record,) = measured(output)
    assert record["seconds"][0] > 0
    assert record["value"][0] == pytest.approx(record["reported"][0], rel=0.1)
    assert "J per point as reported" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message", "code"),
    [
        ("time-to-quality --data nothing -C 5", "--data must be a file or one of kdd", 1),
        ("time-to-quality --data nothing.npy -C 5", "nothing.npy does not exist", 1),
        ("time-to-quality --peers nobody", "got nobody", 2),
        ("time-to-quality --peers cprime-em", "cprime-em cannot be run with --model k-means", 1),
        ("time-to-quality --iterations 5,3", "must be increasing, got 5,3", 2),
        ("time-to-quality --repetitions 0", "must be at least 1, got 0", 2),
        ("time-to-quality --limit 0", "must be positive, got 0", 2),
        ("time-to-quality --threads 100000", "processors there are, got 100000", 2),
        ("iteration --peers sklearn-bisecting", "sklearn-bisecting cannot be told how many iterations", 1),
        ("growth --along D --data iris", "--data cannot be chosen along D", 1),
        ("growth --along C -C 5", "-C cannot be chosen along C", 1),
        ("growth --along C --data iris --values 5,151", "--values must be at most the 150 points of iris, got 151", 1),
        ("growth --along N --data iris --values 2,100", "--values must be at least the 3 clusters, got 2", 1),
        ("million --points 5 -C 10", "--points must be at least the 10 clusters, got 5", 1),
        ("embeddings --points 5 -C 10", "--points must be at least the 10 clusters, got 5", 1),
        ("embeddings --types float8", "must be among float32, float16, int8, uint8, got float8", 2),
        ("page nothing.jsonl", "nothing.jsonl", 1),
        ("nothing", "invalid choice", 2),
    ],
)
def test_bad_arguments_end_with_one_line(command, message, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == code
    assert message in capsys.readouterr().err


def test_clusters_are_needed_for_a_file_and_must_fit_it(file, output, capsys):
    for more, message in ((["-C", "601"], "600 points of points.npy, got 601"), ([], "-C is needed with points.npy")):
        with pytest.raises(SystemExit):
            main(["time-to-quality", "--data", str(file), *more, "--output", str(output)])
        assert message in capsys.readouterr().err


def test_missing_data_are_skipped_with_the_reason(output, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("benchmarks.data.FOLDER", tmp_path)
    main(["time-to-quality", "--data", "kdd", "--output", str(output)])
    (record,) = measured(output)
    assert "kddcup04_protein.npz does not exist" in record["skipped"]
    assert "Skipped: " in capsys.readouterr().out


def test_help_names_every_command(forked):
    module = "import runpy; runpy.run_module('benchmarks', run_name='__main__', alter_sys=True)"
    done = forked(module, "--help", folder=ROOT)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in (*MEASURES, *PROFILES, "page", "list"))


def test_profiles_are_commands_that_can_be_parsed():
    from benchmarks.__main__ import _parser

    for lines, _ in PROFILES.values():
        for line in lines:
            options = _parser().parse_args(line.split())
            assert options.command in MEASURES


def test_list_names_peers_and_data(capsys):
    main(["list"])
    text = capsys.readouterr().out
    assert all(f"| {name} |" in text for name in (*PEERS, "kdd", "patches"))


@pytest.mark.parametrize("line", ["[1]", '{"peer": "cprime"}', "{", '{"measure": "nothing"}', '{"measure": "machine"}'])
def test_page_refuses_what_is_no_results_file(line, tmp_path, capsys):
    path = tmp_path / "results.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["page", str(path), "--output", str(tmp_path / "page.md")])
    assert str(path) in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


def point(peer: str, seconds: float, value: float, model: str = "k-means", **settings) -> dict:
    return {"peer": peer, "seconds": [seconds], "value": [value], "settings": settings, "model": model}


def test_points_below_and_left_of_the_curve_are_found():
    ours = [point("cprime", 1.0, 10.0, tol=0.1), point("cprime", 2.0, 8.0), point("cprime-lloyd", 0.5, 30.0)]
    beaten, below = point("faiss", 3.0, 9.0), point("intelex", 1.5, 9.0)
    better, left, faster = point("sklearn-elkan", 9.0, 7.0), point("faiss-super", 0.4, 11.0), point("faiss", 0.9, 9.9)
    assert time_to_quality.unmatched([*ours, beaten, below, better, left, faster]) == ([below, better, faster], [left])


def test_reference_is_25_iterations_of_faiss_where_it_was_run():
    records = [point("cprime", 1, 1), point("faiss", 1, 1, niter=25), point("faiss", 2, 1, niter=100)]
    assert time_to_quality.reference(records)["settings"] == {"niter": 25}
    assert time_to_quality.reference(records[:1]) == records[0]
    assert time_to_quality.reference([{"peer": "faiss", "model": "k-means", "left_out": "x"}]) is None


def test_the_exponent_of_a_power_law_is_found():
    law = [(value, [3 * value**0.7, 3 * value**0.7, 1e9]) for value in (10, 100, 1000)]
    slope, error = growth.exponent(law)
    assert slope == pytest.approx(0.7)
    assert error == pytest.approx(0, abs=1e-9)
    slope, error = growth.exponent([(1, [1.0]), (2, [4.0]), (4, [10.0])])
    assert slope == pytest.approx(np.log(10) / np.log(4))
    assert error > 0.1


def test_ratios_are_taken_round_by_round():
    assert ratios([2.0, 9.0], [1.0, 3.0]) == [2, 3]
    assert spread([2.0, 3.0, 10.0]) == "3 (2 to 10)"
    assert spread([2.0]) == "2"


def test_records_are_plain_json(output):
    from benchmarks.records import append

    append(output, [{"measure": "x", "a": np.float32(0.5), "b": [np.int64(3)]}])
    append(output, [{"measure": "y"}])
    assert [json.loads(line) for line in output.read_text().splitlines()] == read(output)
    assert read(output)[0] == {"measure": "x", "a": 0.5, "b": [3]}
    with pytest.raises(TypeError, match="ndarray cannot be written"):
        append(output, [{"measure": "z", "a": np.zeros(2)}])
