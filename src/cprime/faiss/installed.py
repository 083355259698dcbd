"""The FAISS module; importing this file raises an error with the package to install if FAISS is missing."""

from typing import Any

from cprime.sources.optional import require

faiss: Any = require("faiss", "cprime.faiss")
