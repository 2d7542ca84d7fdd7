"""The documentation, built by `make docs` into docs/_build/html. Nothing of it needs a network."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np

import saltus as sl

project = "saltus"
author = "The saltus authors"
project_copyright = "The saltus authors"
version = release = sl.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_copybutton"]
exclude_patterns = ["_build"]
default_role = "code"  # docstrings write `q` for code, as Markdown does

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike"}
autosummary_generate = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "saltus"
html_static_path = ["_static"]
html_css_files = ["saltus.css"]
html_favicon = "_static/mark.svg"
html_show_sphinx = False
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_logo": "wordmark-light.svg",
    "dark_logo": "wordmark-dark.svg",
    "sidebar_hide_name": True,
    "light_css_variables": {"color-brand-primary": "#b3500a", "color-brand-content": "#a34400"},
    "dark_css_variables": {"color-brand-primary": "#f0933e", "color-brand-content": "#f0933e"},
}

# ----------------------------------------------------------------------------------------------------------- docstrings

ARGUMENT = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*): (.*)$")
"""A line of a docstring that explains an argument, or several."""

FIELD = re.compile(r"^    (\w+)(?:: ([^#=]+?))?(?: = [^#]*?)?(?:  # (.*))?$")
"""A field of a dataclass or a member of an enumeration, with its type and its comment."""


def as_definitions(lines: list[str]) -> list[str]:
    """`name: explanation` as an entry of a definition list; what begins deeper goes on with the explanation."""
    result: list[str] = []
    explaining = False
    for line in lines:
        argument = ARGUMENT.match(line)
        if argument:
            result += ["", f"``{argument[1]}``", f"    {argument[2]}"]
        else:
            result += ["", line] if explaining and line[:1].strip() else [line]
        explaining = bool(argument) or (explaining and line[:1] == " ")
    return result


def described_fields(record: type) -> list[str]:
    """What the comments in a class say of its fields: there are shapes and units."""
    lines = ["", ""]
    for line in inspect.getsource(record).splitlines():
        field = FIELD.match(line)
        if field and (field[2] or field[3] or issubclass(record, enum.Enum)):
            told = ", ".join(part for part in (f"``{field[2]}``" if field[2] else "", field[3] or "") if part)
            lines += [f"``{field[1]}``", f"    {told or '..'}", ""]
        elif line.startswith("    def "):
            break
    return lines


def tidy_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """From the docstrings' Markdown-like lines to reStructuredText."""
    escaped = [line if line.lstrip().startswith((">>>", "...")) else re.sub(r"([*|])", r"\\\1", line) for line in lines]
    lines[:] = as_definitions(escaped)
    if what == "class" and (dataclasses.is_dataclass(thing) or issubclass(thing, enum.Enum)):
        lines += described_fields(thing)


def tidy_signature(
    app: Any, what: str, name: str, thing: Any, options: Any, shown: str | None, result: str | None
) -> Any:
    """Types by the names that they have in the sources. Records have their fields below, so nothing in brackets."""
    if what == "class" and (dataclasses.is_dataclass(thing) or issubclass(thing, enum.Enum)):
        return "", None
    return tuple(re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", part) if part else part for part in (shown, result))


# -------------------------------------------------------------------------------------------------------------- replays


def save_replays(app: Any, error: Exception | None) -> None:
    """The replay that the page about the viewer holds: four quadrupeds thrown at once."""
    if error or app.builder.format != "html":
        return
    robot = sl.load_robot("quadruped")
    q = np.tile(robot.reference_configurations["standing"], (4, 1))
    v = np.zeros((4, robot.nv))
    v[:, :6] = (0, 0, 4.0, 0, 0, 0) + np.random.default_rng(1).uniform(-5, 5, (4, 6)) * (0, 0, 0, 1, 1, 1)
    path, dt = [q], 0.002
    for _ in range(400):
        v = v + dt * sl.aba(robot, q, v, -0.4 * v * (np.arange(robot.nv) >= 6))
        q = sl.integrate(robot, q, dt * v)
        path.append(q)
    folder = Path(app.outdir) / "replays"
    folder.mkdir(exist_ok=True)
    sl.view.save_replay(folder / "thrown.html", robot, np.stack(path[::10], axis=1), 10 * dt, title="Thrown at once")


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", tidy_docstring)
    app.connect("autodoc-process-signature", tidy_signature)
    app.connect("build-finished", save_replays)
