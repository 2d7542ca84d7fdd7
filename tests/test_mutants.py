"""The mutation run itself: its list fits the tree, and it tells what lives from what does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import mutants
from tools.mutations import MUTATIONS, Mutation

GOOD = Mutation("sum", "src/sums.py", "a + b", "a - b", "tests/test_sums.py::test_sum")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree that git knows, with a test for sums and none for products."""
    for name, text in {
        "src/sums.py": "def add(a, b): return a + b\ndef multiply(a, b): return a * b\n",
        "tests/test_sums.py": "from sums import add\ndef test_sum(): assert add(1, 2) == 3\n",
        "tests/test_nothing.py": "def test_wrong(): assert False\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def test_the_list_fits_the_tree() -> None:
    flaws = {mutation.what: flaw for mutation in MUTATIONS if (flaw := mutants.flaw(mutation, mutants.ROOT))}
    assert not flaws
    assert len(MUTATIONS) >= 60 and len({mutation.what for mutation in MUTATIONS}) == len(MUTATIONS)
    layers = "kernel spatial model dynamics constraints derivatives collision simulation view cli"
    assert {mutation.file.split("/")[2] for mutation in MUTATIONS} == set(layers.split())


def test_what_is_killed_and_what_lives(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unseen = GOOD._replace(what="product", text="a * b", replacement="a / b")
    before = (tree / GOOD.file).read_text()
    assert mutants.main([GOOD], tree, 1) == 0
    assert mutants.main([GOOD, unseen], tree, 2) == 1
    said = capsys.readouterr().out
    assert said.count("killed ") == 2 and said.count("LIVES ") == 1 and "1 of 2 killed" in said
    assert (tree / GOOD.file).read_text() == before


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"text": "a, b"}, "its text is found 2 times in src/sums.py, expected once"),
        ({"text": "a ** b"}, "its text is found 0 times"),
        ({"file": "src/sum.py"}, "there is no file src/sum.py"),
        ({"tests": "tests/test_sum.py"}, "there is no test tests/test_sum.py"),
        ({"tests": "tests/test_nothing.py"}, "these tests fail without any mutation"),
        ({"replacement": "a +"}, "NOT TESTED"),
    ],
)
def test_mistakes(tree: Path, capsys: pytest.CaptureFixture[str], wrong: dict[str, str], said: str) -> None:
    assert mutants.main([GOOD._replace(**wrong)], tree, 1) == 1
    assert said in capsys.readouterr().out
    assert mutants.main([], tree, 1) == 1
