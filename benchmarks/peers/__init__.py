"""All compared libraries (peers) by name, including cprime. Each adapter imports its library only when it runs."""

from benchmarks.peers import (
    cprime_kmeans,
    cprime_mixture,
    cprime_seeding,
    faiss_kmeans,
    intelex,
    scikit_learn,
    super_kmeans,
)
from benchmarks.peers.base import Fitted, Peer, Settings, Task, shown

__all__ = ["PEERS", "Fitted", "Peer", "Settings", "Task", "of_model", "shown"]

_ADAPTERS = (cprime_kmeans, cprime_mixture, cprime_seeding, faiss_kmeans, super_kmeans, scikit_learn, intelex)

PEERS: dict[str, Peer] = {peer.name: peer for adapter in _ADAPTERS for peer in adapter.PEERS}


def of_model(model: str) -> list[str]:
    """Return the names of the peers that are compared in one figure."""
    return [name for name, peer in PEERS.items() if peer.model == model]
