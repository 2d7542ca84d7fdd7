"""Random trees written as text load, with the right joints: what the mutated files begin from is only one robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saltus as sl

DOFS = {"revolute": 1, "continuous": 1, "prismatic": 1, "fixed": 0, "floating": 6, "planar": 3}
NQ = {"revolute": 1, "continuous": 2, "prismatic": 1, "fixed": 0, "floating": 7, "planar": 4}
# XML has no control characters; attributes fold white space, and names of one are refused.
LETTERS = st.characters(exclude_categories=["C", "Z"])
NUMBERS = st.floats(-10, 10, allow_subnormal=True).map(repr)


@st.composite
def trees(draw: Any) -> tuple[str, list[str], list[float]]:
    """A URDF text, the types of its joints and the masses of its links; elements in any order."""
    count = draw(st.integers(1, 12))
    names = draw(st.lists(st.text(LETTERS, min_size=1, max_size=8), min_size=count, max_size=count, unique=True))
    names = [f"l{name}" for name in names]
    elements, kinds, masses = [], [], []
    for index, name in enumerate(names):
        mass = draw(st.floats(0.01, 100))
        masses.append(mass)
        inertial = (
            f'<inertial><mass value="{mass!r}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
        )
        elements.append(f"<link name={quoteattr(name)}>{inertial}</link>")
        if index:
            kind, parent = draw(st.sampled_from(list(DOFS))), names[draw(st.integers(0, index - 1))]
            kinds.append(kind)
            xyz, rpy = (" ".join(draw(NUMBERS) for _ in range(3)) for _ in range(2))
            limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
            elements.append(
                f'<joint name={quoteattr(f"j{name}")} type="{kind}"><parent link={quoteattr(parent)}/>'
                f'<child link={quoteattr(name)}/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 1 0"/>{limit}</joint>'
            )
    draw(st.randoms(use_true_random=False)).shuffle(elements)
    return f'<robot name="generated">{"".join(elements)}</robot>', kinds, masses


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


@settings(max_examples=150)
@given(tree=trees(), floating_base=st.booleans())
def test_urdf(folder: Path, tree: tuple[str, list[str], list[float]], floating_base: bool) -> None:
    text, kinds, masses = tree
    path = folder / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    model = sl.load_urdf(path, floating_base=floating_base)
    base = 6 if floating_base else 0
    assert model.nv == base + sum(DOFS[kind] for kind in kinds)
    assert model.nq == base + (base > 0) + sum(NQ[kind] for kind in kinds)
    assert sum(joint.mass for joint in model.joints) == pytest.approx(sum(masses))
    sl.save_urdf(model, folder / "copy.urdf")
    copy = sl.load_urdf(folder / "copy.urdf", floating_base=floating_base)
    # Links behind fixed joints are merged, so that joints which met there become siblings, and are sorted anew.
    assert copy.nv == model.nv
    placed, copied = (
        dict(zip((joint.name for joint in each.joints), sl.joint_placements(each, each.neutral()), strict=True))
        for each in (model, copy)
    )
    assert placed.keys() == copied.keys()
    assert all(np.allclose(copied[name], placed[name], rtol=0, atol=1e-9) for name in placed)
