"""`load`, with every class known to it that can be stored: classes register themselves where they are defined."""

import cprime.estimators
import cprime.selection  # noqa: F401
from cprime.storage import load

__all__ = ["load"]
