"""FAISS's k-means, and training of its inverted files and product quantizers, by this library.

Replace `import faiss` by `from cprime import faiss`; all other names are passed on to FAISS.
"""

from typing import Any

from cprime.faiss.clustering import Kmeans
from cprime.faiss.inverted_files import add_to_lists, train_ivf
from cprime.faiss.product_quantizers import train_pq
from cprime.faiss.vectors import faiss as _faiss

__all__ = ["Kmeans", "add_to_lists", "train_ivf", "train_pq"]


def __getattr__(name: str) -> Any:
    return getattr(_faiss, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_faiss)})
