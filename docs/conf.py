"""The documentation site: `make docs` builds it into build/docs, warnings being errors."""

import os
import re
from importlib import metadata
from pathlib import Path

from docutils import nodes
from sphinx_gallery.sorting import ExplicitOrder

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "cprime"
author = "the cprime developers"
copyright = author
version = release = metadata.version("cprime")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
nitpicky = True
default_role = "literal"
smartquotes = False  # quotes are those of strings

myst_enable_extensions = ["colon_fence", "deflist", "html_image"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_filename_map = {  # names that differ in case alone would be one file on some systems
    "cprime.selection.Sweep": "cprime.selection.Sweep-class",
    "cprime.theory.Ledger": "cprime.theory.Ledger-class",
}
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

EXAMPLES = ROOT / "examples"
GALLERY = (  # as one would learn: small data, how many clusters, what clusters are for, then data that are large
    *(
        "old_faithful",
        "choosing_c",
        "covariances_and_numbers",
        "lower_bounds",
        "how_certain",
        "clusters_from_components",
        "components_that_vanish",
        "documents",
        "outliers",
        "heavy_tails",
        "survey",
        "digits",
        "classes_of_any_shape",
    ),
    *("image_compression", "segmentation", "thousands_of_gaussians", "denoising"),
    *("regression_with_two_branches", "mixtures_of_regressions"),
    *("stars", "single_cells", "vector_search", "embeddings_in_a_folder"),
    *("streaming", "larger_than_memory", "resume_after_a_kill", "dask_cluster"),
)
RECIPES = (
    *("near_duplicates", "balanced_sampling", "two_lists", "semantic_ids", "topics", "color_quantization"),
    "point_cloud",
)
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder([f"{name}.py" for name in (*GALLERY, *RECIPES)]),
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("cprime",),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "thumbnail_size": (400, 280),
    "copyfile_regex": "",
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "cprime"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_show_sourcelink = False
WITHOUT_SUBPAGES = ("choose", "faq", "index", "migrating", "start", "teach")
html_sidebars = {page: [] for page in WITHOUT_SUBPAGES}
html_theme_options = {
    "logo": {"text": "cprime"},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}

# Pages of the site whose text is a file of the repository's root, where people look for it.
PAGES_OF_THE_ROOT = {"architecture": "ARCHITECTURE.md", "changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")


def read_source(app, name: str, source: list[str]) -> None:
    """Give a page of the root its text; let links lead to pages of the site where the repository has files."""
    inside = name in PAGES_OF_THE_ROOT
    if inside:
        path = ROOT / PAGES_OF_THE_ROOT[name]
        app.env.note_dependency(str(path))
        source[0] = path.read_text(encoding="utf-8")
    pages = {file: f"{page}.md" for page, file in PAGES_OF_THE_ROOT.items()}

    def moved(match: re.Match[str]) -> str:
        target = match[1]
        if "://" in target:
            return target
        folder = ROOT if inside else (DOCS / name).parent
        path = (folder / target).resolve()
        if path.parent == ROOT and path.name in pages:
            path = DOCS / pages[path.name]
        elif path.is_relative_to(EXAMPLES) and path.suffix == ".py":
            path = DOCS / "gallery" / path.relative_to(EXAMPLES).with_suffix(".rst")
        return Path(os.path.relpath(path, (DOCS / name).parent)).as_posix()

    source[0] = _LINK.sub(moved, source[0])


# Pages that speak of other libraries' classes by the same names.
OF_OTHERS = ("migrating", "generated/cprime.sklearn.", "generated/cprime.faiss.")


def link_names(app, doctree: nodes.document, name: str) -> None:
    """Let public names in code lead to their page: ``KMeans``, ``cprime.KMeans``, ``selection.sweep(…)``.

    Where other libraries have the same names, those with ``cprime.`` alone.
    """
    found = app.env.domaindata["py"]["objects"]
    objects = {full: (entry.docname, entry.node_id) for full, entry in found.items()}
    for full, place in list(objects.items()):  # classes by their last name, where no other has it
        last = full.rpartition(".")[2]
        if found[full].objtype == "class" and sum(other.endswith(f".{last}") for other in found) == 1:
            objects[f"cprime.{last}"] = place
    for literal in list(doctree.findall(nodes.literal)):
        words = literal.astext().partition("(")[0]
        full = words if name.startswith(OF_OTHERS) else f"cprime.{words.removeprefix('cprime.')}"
        page, anchor = objects.get(full, (name, ""))
        if page != name and not isinstance(literal.parent, nodes.reference | nodes.title):
            uri = f"{app.builder.get_relative_uri(name, page)}#{anchor}"
            literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=uri, internal=True))


def skip_inherited(app, what: str, name: str, obj: object, skip: bool, options) -> bool | None:
    """Leave out what scikit-learn's base classes bring, but for the two verbs that people look for."""
    theirs = (getattr(obj, "__module__", None) or "").startswith("sklearn.")
    field = type(obj).__name__ == "_tuplegetter"  # of a named tuple, whose docstring has its attributes
    return True if field or (theirs and name not in ("fit_predict", "fit_transform")) else None


def setup(app) -> dict[str, bool]:
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("doctree-resolved", link_names)
    app.connect("source-read", read_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
