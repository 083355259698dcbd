"""Formulas for the bytes and seconds of one iteration of k-means with neighbor lists on many machines.

The formulas take sizes and rates; this file measures nothing. `docs/scale.md` explains them in words.
"""

import math
from dataclasses import dataclass

EXPANDED = 32  # neighbors whose lists are searched when lists are refined; see `neighbors.components`
FAN_IN = 8  # partial results that one task of the cluster merges; see `execution.distributed`
MOST_EXACT = 32768  # largest number of components with exact lists; see `search.graph`


@dataclass(frozen=True)
class Rates:
    """Seconds of elementary operations on one core; those of the driver use all cores of its machine.

    evaluation: per evaluated point, component and dimension
    packing: per component with points in a chunk, entry of its list and dimension
    component: per component, chunk and dimension
    merging: per byte of two partial results that are added
    step: the driver's M-step, per component and dimension
    pair: per pair of components evaluated for exact lists, and dimension
    refining: per pair evaluated for refined lists, and dimension
    reading: per byte of a file in the page cache
    """

    evaluation: float
    packing: float
    component: float
    merging: float
    step: float
    pair: float
    refining: float
    reading: float


@dataclass(frozen=True)
class Sizes:
    """Sizes: N points of D float32, C components, G entries per neighbor list, M chunks."""

    N: int
    D: int
    C: int
    G: int
    M: int

    @property
    def data(self) -> int:
        return 4 * self.N * self.D

    @property
    def model(self) -> int:
        return 4 * self.C * self.D

    @property
    def lists(self) -> int:
        return 4 * self.C * (self.G - 1)

    @property
    def job(self) -> int:
        """Return the bytes sent to a chunk: centers, lists, and factors for exchange steps."""
        return self.model + self.lists + 8 * self.C

    @property
    def dense_part(self) -> int:
        """Return the bytes returned by a chunk while many points are reassigned.

        These are sums and counts in float64, members, and ids of changed components.
        """
        return 8 * self.C * self.D + 16 * self.C + 4 * math.ceil(self.touched(self.N / self.M))

    def movers_part(self, moved: float) -> int:
        """Return the bytes returned by a chunk if few points (`moved`) are reassigned: sums of changed components."""
        return 16 * self.C + math.ceil(self.touched(moved)) * (8 * self.D + 8)

    def held(self, n: float) -> float:
        """Return the expected number of components with any of n points, if all are equally likely."""
        return self.C * -math.expm1(-n / self.C)

    def touched(self, moved: float) -> float:
        """Return the expected number of components that lose or gain points."""
        return self.held(2 * moved)

    def expectation(self, rates: Rates) -> float:
        """Return the core seconds of the E-steps of all chunks, including dense sums."""
        packed = self.M * self.held(self.N / self.M)
        looked_at = (rates.evaluation * self.N + rates.packing * packed) * self.G * self.D
        return looked_at + rates.component * self.M * self.C * self.D

    def merging(self, rates: Rates) -> float:
        """Return the seconds to merge the dense partial results of all chunks in one place."""
        return rates.merging * (self.M - 1) * self.dense_part

    def driver(self, rates: Rates) -> float:
        """Return the driver's seconds for an iteration without new lists."""
        return rates.step * self.C * self.D

    def refresh(self, rates: Rates) -> float:
        """Return the driver's seconds for new neighbor lists."""
        if self.C <= MOST_EXACT:
            return rates.pair * self.C**2 * self.D
        return rates.refining * self.C * min(EXPANDED, self.G - 1) * self.G * self.D


@dataclass(frozen=True)
class Cluster:
    """Numbers of machines and of cores per machine, and bytes per second of a link; the driver is one more."""

    machines: int
    cores: int
    link: float


def sent(sizes: Sizes, cluster: Cluster) -> tuple[float, float]:
    """Return the seconds to send the job to every machine: as a binary tree, and directly from the driver."""
    one = sizes.job / cluster.link
    return one * math.ceil(math.log2(cluster.machines + 1)), one * cluster.machines


def computed(sizes: Sizes, cluster: Cluster, rates: Rates) -> float:
    """Return the seconds of the E-steps, if the cores of a machine process its chunks in turn."""
    return sizes.expectation(rates) / (cluster.machines * cluster.cores)


def merged_here(sizes: Sizes, cluster: Cluster, rates: Rates) -> float:
    """Return the seconds until each machine has merged the partial results of its chunks.

    Its cores merge pairs in parallel, as long as there are more pairs than cores.
    """
    groups = sizes.M / cluster.machines
    rounds = max(groups - 1, 0) / cluster.cores + (math.log2(min(groups, cluster.cores)) if groups > 1 else 0)
    return rounds * rates.merging * sizes.dense_part


def merged(sizes: Sizes, cluster: Cluster, rates: Rates) -> dict[str, float]:
    """Return, for each method, the seconds until the driver has the sum of one dense partial result per machine."""
    part, W = sizes.dense_part, cluster.machines
    one = part / cluster.link + rates.merging * part
    tree, left = 0.0, W
    while left > FAN_IN:
        tree += (FAN_IN - 1) * one
        left = math.ceil(left / FAN_IN)
    return {
        "all to the driver": W * one,
        "tree of 8, as it is": tree + left * one,
        "tree of 2": math.ceil(math.log2(W)) * one + part / cluster.link if W > 1 else one,
        "reduced by rows": part / cluster.link + rates.merging * part,
    }
