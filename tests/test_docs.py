"""The Python code in the README and in the pages of the documentation runs, page by page, from top to bottom."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from saltus.kernel import ALGORITHMS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)$")


def code_of(page: Path) -> str:
    """The page with all but its Python code blanked: lines keep their numbers, for tracebacks."""
    language, lines = None, []
    for line in page.read_text().splitlines():
        fence = FENCE.match(line)
        if fence:
            language = fence[1] if language is None else None
        lines.append(line if language == "python" and not fence else "")
    assert language is None, f"{page}: a block of code is not closed"
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs(page: Path, tmp_path: Path) -> None:
    # A real file: kernels are compiled from their source, and the cache is keyed on it.
    file = tmp_path / f"{page.stem.replace('-', '_').lower()}_page.py"
    file.write_text(code_of(page))
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    known = len(ALGORITHMS)
    try:
        spec.loader.exec_module(module_from_spec(spec))
    finally:
        del ALGORITHMS[known:]  # those that the page declares


@pytest.mark.parametrize("name", ["README.md", "new-algorithm.md"])
def test_page_has_code(name: str) -> None:
    (page,) = [page for page in PAGES if page.name == name]
    assert code_of(page).count("assert ") >= 5
