"""Costs of an iteration on many machines: formulas, measurements that check them, and a comparison of executions."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.cost import Cluster, Rates, Sizes, computed, merged, sent
from benchmarks.measures import growth, scale
from benchmarks.records import read
from benchmarks.simulation import iterations, n_bytes, rates, started

from benchmarks import executions, machine
from cprime.datasets import clusters

pytestmark = pytest.mark.usefixtures("own_choice_of_kernels")

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
ONES = Rates(*[1.0] * 8)
SMALL = ["scale", "--points", "4000", "-D", "8", "--clusters", "50,200", "--chunks", "1,4", "--rates-from", "100,150"]
SMALL += ["--iterations", "4", "--repetitions", "1"]


@pytest.fixture(autouse=True)
def _small_products(monkeypatch):
    """Use small matrices in the measurement of sgemm's peak rate, which takes a second and does not matter here."""
    monkeypatch.setattr(machine, "sgemm_rate", partial(machine.sgemm_rate, n=64))


def test_bytes_of_jobs_and_parts_are_those_of_the_formulas():
    X = clusters(8000, 500, 24, random_state=0).data
    start = started(X, 500, 8, 1)
    found = list(iterations(start, 4, 8, 1))
    sizes = Sizes(8000, 24, 500, 33, 4)
    assert found[0]["job"] == pytest.approx(sizes.job - 8 * 500, rel=0.05)
    assert {run["dense"] for run in found} == {True, False}
    for run in found:
        if run["dense"]:
            assert run["part"] == pytest.approx(sizes.dense_part, rel=0.05)
        elif run["moved"] is not None:  # clusters differ in size, so fewer are touched than if all were equally likely
            assert 0.6 * sizes.movers_part(run["moved"] / 4) < run["part"] < 1.1 * sizes.movers_part(run["moved"] / 4)


def test_chunks_of_an_iteration_are_the_same_algorithm():
    """The number of reassigned points in each iteration is equal with 16 chunks and with one."""
    X = clusters(3000, 100, 8, random_state=0).data
    start = started(X, 100, 5, 1)
    one, many = ([run["moved"] for run in iterations(start, n, 1, 1)] for n in (1, 16))
    assert one == many


def test_bytes_are_counted_with_what_arrays_hold():
    assert n_bytes(np.zeros(10_000)) == pytest.approx(80_000, rel=0.01)


def test_rates_are_found_again_in_what_they_make():
    D = 16
    true = Rates(2e-10, 7e-10, 3e-9, 4e-10, 5e-9, 6e-11, 8e-10, 1e-10)
    chunks = []
    for n, held, C in ((100, 90, 1000), (5000, 800, 1000), (5000, 3000, 9000), (90_000, 8000, 9000)):
        looked_at = (true.evaluation * n + true.packing * held) * 33 * D
        chunks.append({"n": n, "held": held, "C": C, "seconds": looked_at + true.component * C * D})
    driver = [
        {
            "C": C,
            "step": true.step * C * D,
            "pairs": true.pair * C * C * D,
            "refining": true.refining * C * 32 * 33 * D,
            "merging": true.merging * Sizes(1, D, C, 33, 1).dense_part,
        }
        for C in (1000, 9000)
    ]
    found = rates(chunks, driver, true.reading, D)
    np.testing.assert_allclose(list(vars(found).values()), list(vars(true).values()), rtol=1e-6)


def test_more_machines_compute_faster_and_wait_longer():
    links = [Cluster(W, 4, 1e9) for W in (1, 8, 64, 512)]
    sizes = Sizes(10**7, 16, 1000, 33, 4096)
    assert computed(sizes, links[0], ONES) == pytest.approx(512 * computed(sizes, links[3], ONES))
    assert [sent(sizes, link)[0] for link in links] == sorted(sent(sizes, link)[0] for link in links)
    for link in links[1:]:
        ways = merged(sizes, link, ONES)
        assert ways["reduced by rows"] < ways["tree of 2"] <= ways["tree of 8, as it is"] <= ways["all to the driver"]
    one = Sizes(1, 16, 1000, 33, 1).dense_part * (1 + 1e-9)
    ways = merged(Sizes(10**7, 16, 1000, 33, 10**7), links[3], ONES)
    assert ways["tree of 8, as it is"] == pytest.approx(22 * one, rel=1e-3)  # 512 parts become 64, then 8, then one
    assert ways["all to the driver"] == pytest.approx(512 * one, rel=1e-3)


def test_small_chunks_cost_what_is_packed_for_them():
    few, many = Sizes(10**6, 16, 1000, 33, 10), Sizes(10**6, 16, 1000, 33, 1000)
    assert few.held(10**5) == pytest.approx(1000)
    assert many.held(1) == pytest.approx(1, rel=1e-3)
    assert few.expectation(ONES) < many.expectation(ONES)
    assert few.movers_part(10) < few.movers_part(1000) < few.dense_part


def test_scale_measures_and_fills_a_page(tmp_path, capsys):
    output, page = tmp_path / "results.jsonl", tmp_path / "page.md"
    main([*SMALL, "--output", str(output)])
    assert "λ, a candidate of refined lists" in capsys.readouterr().out
    page.write_text("# Mine\n<!-- scale: chunks -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    main(["fill", str(output), "--output", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Mine\n<!-- scale: chunks -->\n\n| C | M |")
    assert text.endswith("\n<!-- end -->\nafter\n")
    assert "old" not in text
    assert (tmp_path / "scale.png").stat().st_size > 10_000
    assert len([record for record in read(output) if record.get("kind") == "chunks"]) == 4
    main(["page", str(output), "--output", str(tmp_path / "whole.md")])
    assert "## Scale" in (tmp_path / "whole.md").read_text(encoding="utf-8")
    page.write_text("<!-- scale: nothing -->\n<!-- end -->", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["fill", str(output), "--output", str(page)])
    assert "wants nothing" in capsys.readouterr().err


def test_the_page_of_scale_has_the_tables_of_its_results():
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    records = [record for record in read(ROOT / "docs" / "scale" / "results.jsonl") if record["measure"] == "scale"]
    tables = scale.tables(records)
    marked = dict(re.findall(r"<!-- scale: (\w+) -->\n\n(.*?)\n\n<!-- end -->", text, re.DOTALL))
    assert set(tables) <= set(marked)
    for name, table in tables.items():
        assert marked[name] == table


@pytest.mark.filterwarnings("ignore")  # Dask warns of ports and of processes that end
@pytest.mark.long
def test_growth_compares_executions(file, tmp_path, capsys, monkeypatch):
    pytest.importorskip("pyarrow")
    names = [name for name in executions.EXECUTIONS if not name.startswith("Dask")]
    monkeypatch.setattr(executions, "EXECUTIONS", {name: executions.EXECUTIONS[name] for name in names})
    command = ["growth", "--executions", "--along", "N", "--data", str(file), "--values", "300,600", "-C", "5"]
    main([*command, "--iterations", "3", "--repetitions", "2", "--output", str(tmp_path / "results.jsonl")])
    text = capsys.readouterr().out
    records = [record for record in read(tmp_path / "results.jsonl") if record["measure"] == "growth"]
    assert {record["peer"] for record in records} == set(names)
    for record in records:
        assert len(record["seconds"]) == 2
        assert all(seconds > 0 for seconds in record["seconds"])
    at = {record["peer"]: record["value"] for record in records if record["at"] == 600}
    for name in names[1:]:
        np.testing.assert_allclose(at[name], at[executions.WHOLE], rtol=0.05)
    assert "against one chunk in memory | N = 300 | N = 600 |" in text
    assert f"| {executions.WHOLE} | 1 (1 to 1) |" in text
    assert growth.figures(records)


def test_dask_is_among_the_executions(points):
    pytest.importorskip("distributed")
    (name,) = [name for name in executions.EXECUTIONS if name.startswith("Dask")]
    assert executions.EXECUTIONS[name][1] == "distributed"


@pytest.mark.parametrize("more", [["--along", "threads"], ["--peers", "cprime"]])
def test_executions_take_no_peers_and_no_threads(file, more, capsys):
    with pytest.raises(SystemExit):
        main(
            [
                "growth",
                "--data",
                str(file),
                "-C",
                "5",
                "--executions",
                *(["--along", "N"] if more[0] == "--peers" else []),
                *more,
            ]
        )
    assert "--executions cannot be chosen" in capsys.readouterr().err
