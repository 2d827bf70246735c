"""The documentation site: sphinx-build -W --keep-going --quiet -b html docs docs/_build/html."""

import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from tacit import __version__

DOCS = Path(__file__).parent

project = "tacit"
author = "the tacit authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_inherit_docstrings = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"tacit {version}"
html_show_sourcelink = False
html_copy_source = False


def include_proofs() -> None:
    """A page of the site for every proof, which stays where it is, beside the code."""
    folder = DOCS / "proofs"
    folder.mkdir(exist_ok=True)
    for proof in (DOCS.parent / "proofs").glob("*.md"):
        page = f"```{{include}} ../../proofs/{proof.name}\n```\n"
        if not (folder / proof.name).exists():
            (folder / proof.name).write_text(page)


include_proofs()


def plain_bars(app, what, name, obj, options, lines):  # type: ignore[no-untyped-def]
    """Bars in docstrings are norms, not substitutions of reStructuredText."""
    for number, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "``".join(parts)


PLAINER = (
    (r"frac(\d)(\d)", r"frac{\1}{\2}"),
    (r"\\dots\b", r"\\ldots"),
    (r"(\\(?:bar|hat|tilde|check|wide\w+|overline)\s*(?:\{[^{}]*\}|\\\w+|\w))_", r"\1{}_"),
)
"""TeX that the writer of MathML misreads: 12 as one number, an index of an accent as its limit."""


def write_math(self, node):  # type: ignore[no-untyped-def]
    """A formula as MathML, which browsers draw without a script from elsewhere."""
    tex = node.astext()
    for written, read in PLAINER:
        tex = re.sub(written, read, tex)
    try:
        tex = tex2mathml(tex, as_block=isinstance(node, nodes.math_block))
    except MathError as error:
        logging.getLogger("math").warning("formula %r: %s", tex, error, location=node)
    self.body.append(tex)
    raise nodes.SkipNode


class Anchors(SphinxTransform):
    """Links may lead to ``<a id="e7"></a>``, from the same page and from others."""

    default_priority = 800  # before links are resolved

    def apply(self, **kwargs):  # type: ignore[no-untyped-def]
        """Add these places to the headings that can be linked to."""
        places = getattr(self.document, "myst_slugs", {})
        for node in self.document.findall(nodes.raw):
            for name in re.findall(r'<a id="([\w-]+)">', node.astext()):
                places.setdefault(name, (node.line, name, name))


def setup(app):  # type: ignore[no-untyped-def]
    """Hook into the building of the site."""
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.add_transform(Anchors)
    app.connect("autodoc-process-docstring", plain_bars)
