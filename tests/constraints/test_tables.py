"""Tables: an algorithm names the parts that it reads, all of them and no other, and a model fills each part once."""

from __future__ import annotations

import ast

import pytest

import saltus as sl
from saltus.constraints.constrained_aba import _constrained_aba
from saltus.constraints.loop_aba import _loop_aba
from saltus.constraints.tables import CONSTRAINTS, TIES, ConstrainedModel
from saltus.kernel import ALGORITHMS, Algorithm
from saltus.kernel.directional import DIRECTIONAL
from saltus.kernel.sources import kernels_of, syntax_of
from saltus.model.coupled_tables import COUPLED
from saltus.model.tree import TREE

OF_HORIZONS = {"robot_constrained_aba_difference"}
"""They take the tables of a horizon's rollout, though they read few of them: all are called with the same problem."""

CONSTRAINED = [
    x
    for x in (*ALGORITHMS, *DIRECTIONAL)
    if CONSTRAINTS in x.tables.parts and COUPLED not in x.tables.parts and x.name not in OF_HORIZONS
]
"""Those for robots with mimic joints read fields by other names (`overlaid`)."""


def names_read(algorithm: Algorithm) -> set[str]:
    """All attributes in the sources of an algorithm's kernels."""
    kernels = {each for kernel in algorithm.kernels for each in kernels_of(kernel)}
    trees = [syntax_of(kernel)[0] for kernel in kernels]
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("algorithm", CONSTRAINED, ids=[f"{type(x).__name__}-{x.name}" for x in CONSTRAINED])
def test_every_part_is_read(algorithm: Algorithm) -> None:
    """What is read and not named does not compile; what is named and not read is a table that nobody needs."""
    names = names_read(algorithm)
    for part in algorithm.tables.parts[2:]:  # all have the tree and the constraints
        assert names & {*part.ints.fields, *part.reals.fields, *part.sizes}


def test_parts_are_filled_once_and_when_needed() -> None:
    robot = sl.load_robot("quadruped")
    contacts = [sl.Contact(robot, foot) for foot in sl.robot_frames("quadruped").feet]
    problem, other = (ConstrainedModel(robot, contacts, 1e-6) for _ in range(2))
    assert problem.parts[TREE] is other.parts[TREE] is robot.parts[TREE]
    one = _constrained_aba.filled(problem)
    assert one is _constrained_aba.filled(problem)
    assert TIES not in problem.parts
    two = _loop_aba.filled(problem)
    assert problem.parts[TIES] in two.parts
    shared = [part for part in one.parts if part in two.parts]
    assert len(shared) == 3  # the tree, the constraints, and what supports them
