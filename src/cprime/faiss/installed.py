"""Import of the FAISS module; if FAISS is missing, the error names the package to install."""

from typing import Any

from cprime.sources.optional import require

faiss: Any = require("faiss", "cprime.faiss")
