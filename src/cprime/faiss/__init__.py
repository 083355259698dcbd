"""FAISS's k-means, inverted files and product quantizers, trained by this library.

`from cprime import faiss` in place of `import faiss` is all that a program needs: what is not here is FAISS's own.
"""

from typing import Any

from cprime.faiss.clustering import Kmeans
from cprime.faiss.installed import faiss as _faiss
from cprime.faiss.inverted_files import train_ivf
from cprime.faiss.product_quantizers import train_pq

__all__ = ["Kmeans", "train_ivf", "train_pq"]


def __getattr__(name: str) -> Any:
    return getattr(_faiss, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_faiss)})
