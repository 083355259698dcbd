"""Worked examples, a short script each, and the gallery made of what they write. `python -m examples --help`.

An example is a module with `main(output, small=False)`, which draws one picture and says a few lines (`result.py`); its
docstring says what it shows. `page.py` puts docstrings, pictures and lines together, and `__main__.py` runs them.
"""

# In the order of the gallery.
EXAMPLES = (
    "old_faithful",
    "image_compression",
    "segmentation",
    "vector_search",
    "outliers",
    "choosing_c",
    "larger_than_memory",
    "resume_after_a_kill",
    "dask_cluster",
)
