"""Each example script runs alone in an empty folder, draws its figures, emits no warning and prints true statements."""

import ast
import os
import re
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from forks import PACKAGE, forks

SCRIPTS = {path.stem: path for path in sorted((Path(__file__).parents[2] / "examples").rglob("*.py"))}
SLOW = {"dask_cluster", "how_certain", "image_compression", "larger_than_memory", "lower_bounds"}  # 20 to 35 s each
SLOW |= {
    "covariances_and_numbers",
    "resume_after_a_kill",
    "embeddings_in_a_folder",
    "color_quantization",
    "thousands_of_gaussians",
}  # 12 to 20 s
# Runs a script as the interpreter does, and saves all figures that it shows.
DRIVER = """
import runpy, sys
import matplotlib.pyplot as plt

shown = []
plt.show = lambda: shown.extend(map(plt.figure, plt.get_fignums()))
runpy.run_path(sys.argv[1], run_name="__main__")
for i, figure in enumerate(shown):
    figure.savefig(f"{i}.png")
"""


def imported(statements: list[ast.stmt]) -> set[str]:
    """Return the modules that statements import unconditionally."""
    names = {alias.name for node in statements if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module for node in statements if isinstance(node, ast.ImportFrom) and node.module}


def numbers(pattern: str, said: str) -> list[float]:
    """Return the numbers at `#` in a pattern, for all matches in the text."""
    found = re.findall(re.escape(pattern).replace(r"\#", r"(-?[\d,]*\.?\d+)"), said)
    return [float(text.replace(",", "")) for text in found]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_stands_alone(name):
    text = SCRIPTS[name].read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, underline, blank, *rest = (ast.get_docstring(tree) or "").splitlines()
    assert underline == "=" * len(title)
    assert blank == ""
    assert len(" ".join(rest)) > 150
    assert text.count("\n# %%\n") >= 2
    modules = imported([node for node in ast.walk(tree) if isinstance(node, ast.stmt)])
    assert re.search(r"^(?:from|import) cprime", text, re.MULTILINE)
    assert not any(re.match(r"examples|reproduction|.*\._", module) for module in modules)
    assert modules.isdisjoint(SCRIPTS)


def test_the_style_has_the_colors_of_the_displays():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from cprime._utils.style import COLORS

    with pyplot.style.context("cprime.style"):
        cycle = pyplot.rcParams["axes.prop_cycle"].by_key()["color"]
    assert tuple(cycle) == COLORS


def bounds_hold(said):
    """Check F ≤ L for every fit, and return these pairs."""
    pairs = re.findall(r"F = +(-?[\d.]+), L = +(-?[\d.]+)", said)
    assert pairs
    assert all(float(F) <= float(L) for F, L in pairs)
    return [(float(F), float(L)) for F, L in pairs]


def old_faithful(said):
    k_means, k_means_C, em, full = bounds_hold(said)
    assert k_means[0] < k_means_C[0] < em[0]
    gaps = [L - F for F, L in (k_means, k_means_C, em, full)]
    assert gaps[0] > gaps[1] > gaps[2] == gaps[3] == 0


def image_compression(said):
    ours, theirs = (
        [float(value) for line in re.findall(rf"{name}  +(.*)", said) for value in re.findall(r"([\d.]+) dB", line)]
        for name in ("our palette", "median cut")
    )
    assert len(ours) == len(theirs) == 6
    assert all(a > b for a, b in zip(ours, theirs, strict=True))


def choosing_c(said):
    assert len(re.findall(r"(?:bic|aic|held_out|elbow of J|modeling terms) +25\n", said)) == 6
    assert len(re.findall(r"(?:X|G)Means: 25,", said)) == 2


def lower_bounds(said):
    """Check that bounds are below J, and that separated groups have a smaller gap than a cloud of points."""
    (one_start, best), bounds = numbers("J = #, J*", said), numbers("J* >= #\n", said)
    assert max(bounds) <= best < one_start
    assert max(numbers("J is at most # %", said)) < 1
    _, groups, cloud = numbers(": gap # %", said)
    assert groups < cloud < 30


def how_certain(said):
    """Check that two components are enough, and that theory and bootstrap agree about their weights."""
    assert "n_components at alpha=0.05: 2" in said
    theory, resamples = re.findall(r"weights_\[0\] +(?:[0-9.]+) +([0-9.]+)", said)
    assert abs(float(theory) / float(resamples) - 1) < 0.3


def components_that_vanish(said):
    assert numbers("\n# of 60 components have points", "\n" + said) == [8]
    before, after = re.findall(r"bound: (-[\d.]+), at the end (-[\d.]+)", said)[0]
    assert float(after) > float(before)


def clusters_from_components(said):
    """Check that joins by entropy find the shapes, other methods do not, and twelve clusters are suggested."""
    few, joined, ward, followed = numbers("ARI #\n", said)
    assert max(few, ward) < 0.6
    assert min(joined, followed) >= 0.95
    assert numbers("the joins suggest #", said) == [12]


def outliers(said):
    areas = numbers("area under the ROC #", said)
    assert len(areas) == 8
    assert max(areas[:4]) == areas[2]  # 30 components per cluster describe the clusters best
    assert max(areas[4:]) == areas[4]  # one component detects rotated digits best


def classes_of_any_shape(said):
    gaussian, mixture = numbers("class: #% correct", said)
    assert gaussian < 85
    assert mixture > 98
    assert min(numbers("one #, other", said.splitlines()[1])) > 2
    assert numbers("cluster #", said) == [1, 1]


def covariances_and_numbers(said):
    assert "best: EEE, 3 components: 2,314.3" in said
    assert numbers("rows with an uncertain label: #", said)[0] > 10


def survey(said):
    assert "BIC chooses 3 types" in said
    assert numbers("#% of the households are in their true type", said)[0] > 95


def heavy_tails(said):
    gaussians, tails, remain, *more = numbers("off by # sigma", said)
    assert gaussians > 1
    assert max(tails, remain) < 0.1
    widths = numbers("widths times #", said)
    assert widths[0] > 2
    assert abs(widths[2] - 1) < 0.1 < abs(widths[1] - 1) < 0.2
    assert max(numbers("with Gaussians, # with t", said)) < 0.1 < more[-1]


def vector_search(said):
    errors = numbers("mean squared error #", said)
    assert errors[1] <= errors[0]
    for line in re.findall(r"recall and queries a second (.*)", said):
        recall = [float(value) for value in re.findall(r"([\d.]+) at", line)]
        assert all(a <= b for a, b in pairwise(recall))
        assert recall[-1] > 0.95


def digits(said):
    bounds_hold(said)
    errors = numbers("error # a pixel", said)
    assert errors[0] == max(errors)
    assert errors[-1] < 0.95 * errors[0]


def thousands_of_gaussians(said):
    bounds_hold(said)
    assert numbers("looks at #%", said)[0] < 20


def stars(said):
    assert numbers("kind is right for #%", said)[0] > 95
    assert numbers("\n# of the 60 odd", said)[0] > 40
    assert "the same means: True" in said or "astropy is not installed" in said


def embeddings_in_a_folder(said):
    """Check that most near-duplicates are found with less than 1 % of all pairs, and few others are removed."""
    assert numbers("compared #% of all pairs", said)[0] < 1
    assert numbers("found #% of the", said)[0] > 85
    assert numbers("\n# documents went that are no copies", said)[0] < 100
    together = numbers(": #% together", said)
    assert len(together) == 3
    assert min(together) > 90


def streaming(said):
    forgets_nothing, forgets = numbers(": at the end # from", said)
    assert forgets < 0.1 * forgets_nothing


def single_cells(said):
    k_means, mixture = numbers("with the true types #", said)
    assert k_means < mixture


def documents(said):
    assert numbers("#% are at the nearest center", said)[0] > 95


def larger_than_memory(said):
    assert "\nthe same bits\n" in said
    by_path, whole = numbers("at most # MB", said)
    assert by_path < whole or by_path == whole == 0  # both are zero on systems without /proc


def resume_after_a_kill(said):
    assert said.count(": the same bits\n") == 5
    assert said.count("then killed") == 2
    assert said.count("then converged") == 2


def dask_cluster(said):
    assert said.count("same bits: True") == 3


def denoising(said):
    """Check that each mixture denoises better than the one before, and has a higher likelihood."""
    values = [float(value) for value in re.findall(r": (\d+\.\d+) dB", said)]
    assert len(values) == 4
    assert all(after > before + 0.5 for before, after in pairwise(values))
    likelihoods = [float(value) for value in re.findall(r"log-likelihood (-\d+\.\d)", said)]
    assert likelihoods == sorted(likelihoods)


def regression_with_two_branches(said):
    by_mean, by_mode, by_draw = numbers("a throw misses by # m", said)
    assert by_mode < by_draw < 0.2 * by_mean
    off, said_to_be = numbers("the angle is off by # degrees", said), numbers("is said to be by #", said)
    assert off[1] < 0.1 * off[0]
    assert said_to_be == pytest.approx(off, rel=0.2)


def near_duplicates(said):
    """Check that most copies are found at every C, and that the last C compares less than 1 % of the pairs."""
    compared, found = numbers("compared #%", said), numbers("found #%", said)
    assert compared == sorted(compared, reverse=True)
    assert compared[-1] < 1
    assert min(found) > 90


def balanced_sampling(said):
    at_random, balanced = numbers("rows of # groups", said)
    assert balanced > at_random
    accuracies = numbers("right for #%", said)
    assert accuracies[1] > accuracies[0] + 5


def two_lists(said):
    """Check that the plain inverted file reads the fewest vectors, as the example's text says."""
    read = numbers("recall 0.95 reads # vectors", said)
    assert len(read) == 3
    assert read[0] == min(read)


def semantic_ids(said):
    free, bounded = numbers(", # ids of", said)
    assert bounded > 1.3 * free
    uses = [[float(use) for use in re.findall(r"([\d.]+)x", line)] for line in re.findall("largest code (.*);", said)]
    assert max(uses[1]) < 1.35 < 3 < min(uses[0])
    errors = numbers("error #% of the variance", said)
    assert errors[0] < errors[1] < 1.1 * errors[0]


def topics(said):
    rests, agreements = numbers("topics, #% of", said), numbers("agreement #", said)
    assert rests[0] > 5
    assert rests[1:] == [0, 0]
    assert agreements[0] < min(agreements[1:])


def color_quantization(said):
    quality = numbers(": # dB in", said)
    ours, batches, cut = quality[:3], quality[3:6], quality[6:]
    assert all(a > b > c for a, b, c in zip(ours, batches, cut, strict=True))


def point_cloud(said):
    scores = numbers("log-likelihood # per point", said)
    assert scores[:7] == sorted(scores[:7])
    assert scores[7] < scores[6]


def mixtures_of_regressions(said):
    bics = numbers("curves: BIC #", said)
    assert min(bics) == bics[1] < bics[0] - 100
    terms = re.findall(r"\((-?[\d.]+) ± ([\d.]+)\)", said)
    assert len(terms) == 6
    for (found, error), expected in zip(terms, (0, 5, 0, 15, 10, -1), strict=True):
        assert abs(float(found) - expected) < 3 * float(error)
    with_age, without = re.search(r"BIC with age (\d+), without (\d+)", said).groups()
    assert int(with_age) < int(without) - 100
    assert numbers("class found for #%", said)[0] > 80


CHECKS = {
    "balanced_sampling": balanced_sampling,
    "choosing_c": choosing_c,
    "classes_of_any_shape": classes_of_any_shape,
    "clusters_from_components": clusters_from_components,
    "covariances_and_numbers": covariances_and_numbers,
    "color_quantization": color_quantization,
    "components_that_vanish": components_that_vanish,
    "dask_cluster": dask_cluster,
    "denoising": denoising,
    "digits": digits,
    "documents": documents,
    "heavy_tails": heavy_tails,
    "embeddings_in_a_folder": embeddings_in_a_folder,
    "image_compression": image_compression,
    "how_certain": how_certain,
    "lower_bounds": lower_bounds,
    "larger_than_memory": larger_than_memory,
    "mixtures_of_regressions": mixtures_of_regressions,
    "near_duplicates": near_duplicates,
    "old_faithful": old_faithful,
    "outliers": outliers,
    "point_cloud": point_cloud,
    "regression_with_two_branches": regression_with_two_branches,
    "resume_after_a_kill": resume_after_a_kill,
    "segmentation": bounds_hold,
    "semantic_ids": semantic_ids,
    "single_cells": single_cells,
    "stars": stars,
    "streaming": streaming,
    "survey": survey,
    "thousands_of_gaussians": thousands_of_gaussians,
    "topics": topics,
    "two_lists": two_lists,
    "vector_search": vector_search,
}


@pytest.fixture(scope="module")
def run():
    """Yield a function that runs a script in a folder."""
    pytest.importorskip("matplotlib")
    if not hasattr(os, "fork"):
        pytest.skip("this system forks no processes")
    with pytest.MonkeyPatch.context() as context:
        context.setenv("MPLBACKEND", "agg")
        with forks(*PACKAGE, "matplotlib.pyplot", "matplotlib.backends.backend_agg") as program:
            yield lambda script, folder: program(DRIVER, script, folder=folder, seconds=300)


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.rare] * (name in SLOW)) for name in SCRIPTS])
def test_a_script_runs_and_what_it_says_is_so(name, run, tmp_path):
    needed = imported(ast.parse(SCRIPTS[name].read_text(encoding="utf-8")).body) | {"matplotlib", "PIL"}
    missing = [module for module in needed if find_spec(module.partition(".")[0]) is None]
    if missing or (name == "vector_search" and find_spec("faiss") is None):
        pytest.skip(f"not installed: {', '.join(missing) or 'faiss'}")
    done = run(SCRIPTS[name], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    pictures = sorted(tmp_path.iterdir())
    assert pictures
    assert all(path.suffix == ".png" and path.stat().st_size > 10_000 for path in pictures)
    CHECKS[name](done.stdout)
