"""References, weights, contacts and starts change between solutions: nothing is compiled, and memory is what it was; a new
process finds compiled what another one has used."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saltus as sl
from saltus.kernel import native
from saltus.ocp.terms import CenterOfMass, Control, FrictionCone, State
from tests.kernel.test_memory import in_new_process, kept, short_way

ROBOT = sl.load_robot("quadruped")
FEET = sl.robot_frames("quadruped").feet
STANDING = np.concatenate([ROBOT.reference_configurations["standing"], np.zeros(ROBOT.nv)])
SMALLEST = 16
"""Bytes of the smallest object of Python: what is less a call is none that each call keeps, but NumPy's store of blocks."""
HOME = sl.center_of_mass(ROBOT, STANDING[: ROBOT.nq])


def problem_of(nodes: int = 12) -> sl.ShootingProblem:
    terms = [State(reference=STANDING), Control(weight=1e-2), CenterOfMass(reference=HOME, weight=10.0)]
    terms += [FrictionCone(foot, weight=0.1) for foot in FEET]
    contacts = [sl.Contact(ROBOT, foot, kd=50.0) for foot in FEET]
    final = [State(reference=STANDING)]
    return sl.ShootingProblem(ROBOT, STANDING, [sl.Phase(FEET, nodes=nodes)], terms, final, constraints=contacts)


def change(problem: sl.ShootingProblem, turn: int) -> None:
    """Everything that may: whose turn it is says how."""
    lower = np.array([0.01, 0.0, 0.01]) * (turn % 5)
    problem.set_reference("CenterOfMass", HOME - lower)
    problem.set_reference("State", STANDING, slice(2, 5))
    problem.set_weight("Control", 10.0 ** -(turn % 4))
    problem.active[3:6, :] = [1, turn % 2, turn % 2, 1]
    problem.dt[:-1] = 0.01 + 0.001 * (turn % 3)
    x0 = STANDING.copy()
    x0[2] -= 0.002 * (turn % 3)
    problem.x0 = x0


@pytest.mark.parametrize("solver", [sl.DDP, sl.FDDP, sl.BoxDDP, sl.BoxFDDP])
def test_nothing_is_compiled(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of()
    xs = np.tile(STANDING, (problem.T + 1, 1))
    made = solver(problem)
    us = problem.quasi_static(xs)
    made.solve(xs, us, max_iterations=5)
    monkeypatch.setattr(native, "prepare", lambda *arguments: pytest.fail("something is compiled"))
    costs = []
    for turn in range(6):
        change(problem, turn)
        costs.append(made.solve(xs, us, max_iterations=5).cost)
        again = problem_of()
        change(again, turn)
        assert solver(again).solve(xs, us, max_iterations=5).cost == costs[-1]  # as good as a new problem
    assert len(set(costs)) == 6


def test_memory_of_one_solution_is_that_of_the_next() -> None:
    problem = problem_of()
    xs, solver = np.tile(STANDING, (problem.T + 1, 1)), sl.FDDP(problem)
    us = problem.quasi_static(xs)
    first = solver.solve(xs, us, max_iterations=3)
    expansion, kept_K = solver.expansion, first.K.copy()
    change(problem, 1)
    second = solver.solve(first.xs, first.us, max_iterations=3)
    assert not np.shares_memory(first.K, second.K) and np.array_equal(first.K, kept_K)  # results are their owners'
    assert solver.expansion.Fx.ctypes.data == expansion.Fx.ctypes.data  # type: ignore[union-attr]
    change(problem, 2)
    plain = sl.FDDP(problem).solve(second.xs, second.us, max_iterations=3)
    third = solver.solve(second.xs, second.us, max_iterations=3, out=second)
    assert third.K is second.K and third.Vxx is second.Vxx
    assert np.array_equal(third.K, plain.K) and np.array_equal(third.us, plain.us)
    strange = solver.solve(third.xs, third.us, max_iterations=3, out=first)  # not the last one: a new one is made
    assert strange.K is not first.K and not np.shares_memory(strange.K, third.K)
    none = solver.solve(third.xs, third.us, max_iterations=0, out=strange)
    assert none.K is strange.K and not none.K.any()  # no gains were computed
    many = solver.solve(np.stack([xs] * 2), us, max_iterations=1, out=none)
    assert many.K.shape == (2, *none.K.shape)


@pytest.mark.slow
@short_way
def test_solutions_keep_no_memory() -> None:
    problem = problem_of()
    xs, solver = np.tile(STANDING, (problem.T + 1, 1)), sl.FDDP(problem)
    us = problem.quasi_static(xs)
    state = [0, solver.solve(xs, us, max_iterations=3)]

    def work() -> None:
        state[0] = (state[0] + 1) % 60
        change(problem, state[0])
        state[1] = solver.solve(xs, us, max_iterations=3, out=state[1])

    assert kept(work, 240) < 240 * SMALLEST


@short_way
def test_what_a_solution_allocates_are_states_and_controls() -> None:
    """Derivatives, gains and value functions, a hundred times as large, are those that were there."""
    problem = problem_of(200)
    xs, solver = np.tile(STANDING, (problem.T + 1, 1)), sl.FDDP(problem)
    us = problem.quasi_static(xs)
    result = solver.solve(xs, us, max_iterations=3)
    result = solver.solve(xs, us, max_iterations=3, out=result)
    tracemalloc.start()
    try:
        solver.solve(xs, us, max_iterations=3, out=result)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * xs.nbytes < 0.1 * sum(array.nbytes for array in solver.expansion.whole)  # type: ignore[union-attr]


CODE = """
import pickle, sys
problem, xs, us = pickle.load(open(sys.argv[1], "rb"))
import saltus as sl
result = sl.FDDP(problem).solve(xs, us, max_iterations=5)
print(result.cost.hex(), "saltus.kernel.walk" in sys.modules)
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    problem = problem_of()
    xs = np.tile(STANDING, (problem.T + 1, 1))
    us = problem.quasi_static(xs)
    cost = sl.FDDP(problem).solve(xs, us, max_iterations=5).cost
    file = tmp_path / "problem.pkl"
    file.write_bytes(pickle.dumps((problem, xs, us)))
    assert in_new_process(CODE, str(file)).split() == [cost.hex(), "False"]
