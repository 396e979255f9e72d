"""What Sphinx makes of the documents; scripts/docs stages them and calls it.

Its source folder is a picture of the tree, so that links between documents are the same here and in a checkout.
What differs: comments of headers, and docstrings, are plain text with indented examples, and are shown as they are.
"""

import logging
import os
import pathlib
import re
import sys

tree = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(tree / "python"))

project = "oocarray"
version = re.search(r"project\(oocarray VERSION ([\d.]+)", (tree / "CMakeLists.txt").read_text())[1]
extensions = ["breathe", "myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = ["*.md", "bench/**.md", "docs/**.md", "python/README.md", "python/bench/README.md", "reference/*.md",
                    "tests/public_cases.md"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4  # as GitHub names headings

html_theme = "furo"
html_title = f"oocarray {version}"
html_copy_source = False
highlight_language = "none"
smartquotes = False  # `"` is often code

breathe_projects = {"oocarray": os.environ.get("OOC_DOXYGEN_XML", "")}
breathe_default_project = "oocarray"
primary_domain = "cpp"

# The compiled modules need not be built: their names are enough.
autodoc_mock_imports = ["oocarray._core", "oocarray._mpi"]
autodoc_member_order = "bysource"


def as_it_is(app, what, name, obj, options, lines):
    """A docstring as `help()` shows it."""
    text = [*lines]
    lines[:] = [".. code-block:: none", "", *("   " + line for line in text)] if any(text) else []


class NamespaceOnEachPage(logging.Filter):
    """Each page of the C++ reference is a header, and each of them opens the same namespaces: no news."""

    def filter(self, record):
        text = record.getMessage()
        return not ("Duplicate C++ declaration" in text and re.search(r"cpp:type:: ooc(::literals)?'", text))


# Pages that others lead to, and that the contents leave out
left_out = re.compile(r"README|docs/decisions/0.*|python/bench/README|bench/figures|bench/papers/README|tests/public_cases")


def leave_out(app, doctree):
    if left_out.fullmatch(app.env.docname):
        app.env.metadata[app.env.docname]["orphan"] = True


def setup(app):
    app.connect("doctree-read", leave_out)
    app.connect("autodoc-process-docstring", as_it_is)
    logging.getLogger("sphinx.sphinx.domains.cpp").addFilter(NamespaceOnEachPage())
