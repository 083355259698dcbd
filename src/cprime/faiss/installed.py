"""FAISS itself, or what to install."""

from typing import Any

from cprime.sources.optional import require

faiss: Any = require("faiss", "cprime.faiss")
