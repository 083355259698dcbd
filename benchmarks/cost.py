"""What an iteration of k-means with neighbour lists costs on many machines, by formula: bytes and seconds.

Knows sizes and rates; measures nothing. `docs/scale.md` has the same formulas in words.
"""

import math
from dataclasses import dataclass

EXPANDED = 32  # neighbours whose neighbours are looked at when lists are refined; see `neighbors.lists`
FAN_IN = 8  # parts that a task of the cluster merges; see `execution.distributed`
MOST_EXACT = 32768  # components whose lists come from all pairs; see `search.graph`


@dataclass(frozen=True)
class Rates:
    """Seconds, measured on one core but for the driver, which has those of its machine.

    evaluation: of a point with a component, a dimension      packing: of a component that holds a point with an entry
    of its list, a dimension      component: of a component of a chunk, a dimension      merging: of a byte of two parts
    that are added      step: of the driver's work for a component, a dimension      pair: of a pair of components whose
    distance is computed for exact lists, a dimension      refining: of one that is looked at for refined lists
    reading: of a byte of a file that is in the memory of the system
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
    """N points of D float32, C components, G of them in a list, M chunks."""

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
        """What travels to a chunk: centers, lists, the factors of an exchange."""
        return self.model + self.lists + 8 * self.C

    @property
    def dense_part(self) -> int:
        """What comes back of a chunk while many points move: sums and counts in float64, members, touched ids."""
        return 8 * self.C * self.D + 16 * self.C + 4 * math.ceil(self.touched(self.N / self.M))

    def movers_part(self, moved: float) -> int:
        """What comes back once few move, `moved` of the points of the chunk: sums of what they touch alone."""
        return 16 * self.C + math.ceil(self.touched(moved)) * (8 * self.D + 8)

    def held(self, n: float) -> float:
        """Components that n points are in, if all are as likely."""
        return self.C * -math.expm1(-n / self.C)

    def touched(self, moved: float) -> float:
        """Components that points leave or come to."""
        return self.held(2 * moved)

    def expectation(self, rates: Rates) -> float:
        """Core seconds of the E-steps of all chunks, dense sums among them."""
        packed = self.M * self.held(self.N / self.M)
        looked_at = (rates.evaluation * self.N + rates.packing * packed) * self.G * self.D
        return looked_at + rates.component * self.M * self.C * self.D

    def merging(self, rates: Rates) -> float:
        """Seconds of merging the dense parts of all chunks in one place."""
        return rates.merging * (self.M - 1) * self.dense_part

    def driver(self, rates: Rates) -> float:
        """Seconds of the driver for an iteration without new lists."""
        return rates.step * self.C * self.D

    def refresh(self, rates: Rates) -> float:
        """Seconds of new lists, on the driver."""
        if self.C <= MOST_EXACT:
            return rates.pair * self.C**2 * self.D
        return rates.refining * self.C * min(EXPANDED, self.G - 1) * self.G * self.D


@dataclass(frozen=True)
class Cluster:
    """Machines with cores each, and links that carry bytes a second in each direction; the driver is one more."""

    machines: int
    cores: int
    link: float


def sent(sizes: Sizes, cluster: Cluster) -> tuple[float, float]:
    """Seconds until every machine has the job: handed on from one to the next two, and all from the same one."""
    one = sizes.job / cluster.link
    return one * math.ceil(math.log2(cluster.machines + 1)), one * cluster.machines


def computed(sizes: Sizes, cluster: Cluster, rates: Rates) -> float:
    """Seconds of the E-steps; the cores of a machine take its chunks in turn."""
    return sizes.expectation(rates) / (cluster.machines * cluster.cores)


def merged_here(sizes: Sizes, cluster: Cluster, rates: Rates) -> float:
    """Seconds until each machine has one part of its chunks; its cores merge pairs at the same time, as long as these
    are more than the cores."""
    groups = sizes.M / cluster.machines
    rounds = max(groups - 1, 0) / cluster.cores + (math.log2(min(groups, cluster.cores)) if groups > 1 else 0)
    return rounds * rates.merging * sizes.dense_part


def merged(sizes: Sizes, cluster: Cluster, rates: Rates) -> dict[str, float]:
    """Seconds until the driver has the sum of one dense part a machine, by the ways there are."""
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
