"""A minute of random cases (tools/fuzz), other ones in every run; and that their judge notices what is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import saltus as sl
from tools.fuzz.__main__ import KINDS, complaints, run
from tools.fuzz.constrained import judge
from tools.fuzz.dense import Problem, Sample
from tools.fuzz.robots import Units


@pytest.mark.slow
def test_random_cases() -> None:
    """Failures come with the commands that show them again."""
    seed = os.environ.get("SALTUS_FUZZ_SEED", str(time.time_ns() % 2**40))
    command = [
        sys.executable,
        "-m",
        "tools.fuzz",
        "--seconds",
        os.environ.get("SALTUS_FUZZ_SECONDS", "75"),
        "--seed",
        seed,
    ]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in KINDS:
        assert re.search(rf"[1-9]\d* cases of {kind}, 0 failed", done.stdout), f"no case of {kind}: {done.stdout}"


def test_cases_repeat() -> None:
    """The same seed gives the same case, or a recipe is worth nothing."""
    assert complaints("free", 3) == complaints("free", 3)


def test_exceptions_are_complaints(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(rng: np.random.Generator) -> None:
        raise ValueError("broken")

    monkeypatch.setitem(KINDS, "free", broken)  # type: ignore[arg-type]
    assert "broken" in complaints("free", 1)[0]
    assert run(0.05, 1, ["free"])["free"][1] > 0


def test_judge_notices() -> None:
    """Wrong accelerations, wrong forces, NaN, and convergence where constraints contradict each other."""
    arm = sl.load_robot("arm")
    u = Units(arm, 1.0, 1.0)
    contact = sl.Contact(arm, len(arm.frames) - 1)
    dynamics = sl.ConstrainedDynamics(arm, [contact, contact], "prox_ltl")
    q, v, tau = sl.random_configuration(arm, 1), np.ones(arm.nv), np.ones(arm.nv)
    rest = np.ones(2), np.zeros(6), np.zeros((0, arm.nv)), np.zeros((arm.njoints, 6))
    problem = Problem.of(u, [contact, contact], np.ones(6), Sample(q, v, tau, *rest))
    solution = dynamics.solve(q, v, tau)

    def wrong(a: object, forces: object, status: int = 0, problem: Problem = problem) -> list[str]:
        return list(judge(u, [contact, contact], problem, lambda: (0.0, 0.0), (a, forces, status), "f8", 1e-9))  # type: ignore[arg-type]

    assert not wrong(solution.a, solution.forces)
    assert "accelerations" in wrong(solution.a * (1.0 + 1e-6), solution.forces)[0]
    assert "by forces" in wrong(solution.a, solution.forces * 1.001)[0]
    assert "NaN" in wrong(solution.a, solution.forces * np.nan)[0]
    apart = Problem.of(u, [contact, contact], np.ones(6), Sample(q, v, tau, np.ones(2), np.arange(6.0), *rest[2:]))
    assert "missed" in wrong(*apart.solution, problem=apart)[0]
    assert not wrong(*apart.solution, int(sl.Status.LEAST_SQUARES), problem=apart)
    assert "accelerations" in wrong(solution.a, solution.forces, int(sl.Status.LEAST_SQUARES), problem=apart)[0]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_judge_knows_few_iterations(count: int) -> None:
    """What a proximal method has after so many of them, with a mu that leaves much; and when all are done."""
    arm = sl.load_robot("arm")
    u, contact = Units(arm, 1.0, 1.0), sl.Contact(arm, len(arm.frames) - 1, 6)
    dynamics = sl.ConstrainedDynamics(arm, [contact], "prox_ltl", mu=0.3, tolerance=0.0, most_iterations=count)
    q, v, tau = sl.random_configuration(arm, 1), np.ones(arm.nv), np.ones(arm.nv)
    rest = np.ones(1), np.zeros(6), np.zeros((0, arm.nv)), np.zeros((arm.njoints, 6))
    problem = Problem.of(u, [contact], np.ones(6), Sample(q, v, tau, *rest))
    solution = dynamics.solve(q, v, tau)
    for found, right, all_done in zip(solution[:2], problem.after(count, 0.3), problem.solution, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-8, atol=1e-8 * np.abs(right).max())
        assert np.abs(right - all_done).max() > 1e-3 * np.abs(all_done).max()


FOUND = [
    ("constrained", 541537592377),  # prox_pv ended before its forces were right
    ("constrained", 713701246686),  # kkt took rounding for the rank of rows that nothing moves
    ("constrained", 428117845159),  # NaN that the largest of several numbers had lost: LEAST_SQUARES
    ("constrained", 775372335919),  # a status counted radians as metres
    ("constrained", 709410678076),  # a robot of a millimetre: metres were allowed what radians round
    ("constrained", 459294498980),  # forces on a small body far away, by what its inertia had lost there
    ("constrained", 1030703293428),  # loop_aba rounded m v x v, which is nothing, of small bodies far from the base
    ("slopes", 71020294726),  # nearly singular: differences led over it, and slopes hold forces of much rounding
    ("slopes", 353944953120),  # an impact at rest: one iteration, whose slopes dual numbers have
    ("matrices", 1087261601098),  # LEAST_SQUARES, with the rounding of a dense system at every iteration
    ("matrices", 51594134562),  # quaternions of single precision are not of unit length in double
    ("matrices", 665755341137),  # pivots of doubled rows vanished in single precision: factors of NaN
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "case"), FOUND)
def test_what_was_found_stays_mended(kind: str, case: int) -> None:
    assert not complaints(kind, case)
