"""The Python code in the README and in the pages of the documentation runs, page by page, from top to bottom; the site
builds without a warning, and has every public name."""

from __future__ import annotations

import inspect
import posixpath
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from sphinx.util.inventory import InventoryFile

import saltus as sl
from saltus.kernel import ALGORITHMS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]
FENCE = re.compile(r"^```(\S*)")


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # pages write files
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


@pytest.mark.parametrize(
    "name", ["../README", "quickstart", "models", "batches", "numbers", "conventions", "new-algorithm"]
)
def test_page_has_code(name: str) -> None:
    assert code_of(DOCS / f"{name}.md").count("assert ") >= 4


def test_the_cookbook_has_problems_scripts_and_pictures() -> None:
    from tools.cookbook import PAGES as DRAWN

    pages = {page.stem: page for page in (DOCS / "cookbook").glob("*.md") if page.stem != "index"}
    assert set(DRAWN) == set(pages)
    index = (DOCS / "cookbook" / "index.md").read_text()
    for name, page in pages.items():
        assert f"({name}.md)" in index and f"\n{name}\n" in index, f"{name} is not in the table and in the toctree"
        assert (DOCS / "figures" / f"cookbook-{name}.png").exists(), f"no picture: python -m tools.cookbook {name}"
        assert f"../figures/cookbook-{name}.png" in page.read_text()
        assert code_of(page).count("assert ") >= 2 and "\n## For your own robot\n" in page.read_text(), name


def test_readme_names_everything_that_computes() -> None:
    told = set(re.findall(r"\w+", (ROOT / "README.md").read_text()))
    functions = {name for name in sl.__all__ if inspect.isfunction(getattr(sl, name))}
    assert functions - told <= {"get_threads", "set_threads", "robot_names", "robot_frames"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    build = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder)]
    done = subprocess.run(build, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    with (site / "objects.inv").open("rb") as file:
        objects = InventoryFile.load(file, "", posixpath.join)
    documented = {name for role, entries in objects.items() if role.startswith("py:") for name in entries}
    public = {f"saltus.{name}" for name in sl.__all__} | {f"saltus.view.{name}" for name in sl.view.__all__}
    assert public <= documented, public - documented
    summary = set(re.findall(r"^   (\w+)$", (DOCS / "api" / "index.md").read_text(), re.MULTILINE))
    assert {name.rpartition(".")[2] for name in public} - {"view"} == summary


@pytest.mark.slow
def test_the_site_needs_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        loaded = re.findall(r"""<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=["']([^"']+)""", page.read_text())
        for source in loaded:
            assert not re.match(r"(https?:)?//", source), f"{page.name} asks for {source}"
            target = (page.parent / source.split("?")[0].split("#")[0]).resolve()
            assert source.startswith("data:") or target.exists(), f"{page.name}: {source} is not there"
