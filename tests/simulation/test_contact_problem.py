"""Contact problems: the conditions as they are written, all modes tried, quadratic programs, MuJoCo; and what cannot be."""

from __future__ import annotations

import re
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import saltus as sl
from saltus.arrays import Array
from saltus.constraints.report import Status
from saltus.kernel import F32, F64, Number
from saltus.kernel.cuda import compile_ptx
from saltus.kernel.interpret import interpret
from saltus.model.robots import SHIPPED
from saltus.simulation.solve_contacts import _solve_contacts, problem_of
from tests.simulation.contact_truth import all_solutions, natural_map, random_matrix, random_scene, violations

TOLERANCE = 1e-8
"""Of residuals: ten times what the solver ends at."""


@pytest.fixture(scope="module")
def robots() -> list[sl.Model]:
    return [sl.load_robot(name) for name in SHIPPED]


def box(mass: float = 1.0) -> tuple[Array, Array]:
    """G and J of a cube of 1 m on four points."""
    J = np.zeros((12, 6))
    for k, (x, y) in enumerate([(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]):
        J[3 * k : 3 * k + 3] = np.hstack([np.eye(3), [[0, -0.5, -y], [0.5, 0, x], [y, -x, 0]]])
    return J @ np.diag([1 / mass] * 3 + [6 / mass] * 3) @ J.T, J


def check(G: Array, g: Array, friction: Array, found: sl.ContactImpulses, law: str = "coulomb") -> None:
    """All conditions, and that what is reported is what is left."""
    assert found.status == Status.CONVERGED, (found.status, found.residuals)
    missed = violations(G, g, friction, found.impulses, law)
    size = np.abs(found.impulses).max()
    assert missed["cone"] <= 1e-14 * size
    assert missed["closing"] <= TOLERANCE
    assert missed["work"] <= TOLERANCE * max(1.0, np.abs(found.impulses * g).sum())  # of forces so large
    rounding = 1e-13 * (np.abs(G) @ np.abs(found.impulses) + np.abs(g)).max()
    assert np.abs(found.rates - (G @ found.impulses + g)).max() <= rounding
    if law == "coulomb":
        assert abs(found.residuals.natural - natural_map(G, g, friction, found.impulses)) <= rounding
    assert abs(found.residuals.dual - missed["closing"]) <= rounding


@pytest.mark.parametrize("seed", range(4))
def test_scenes_of_robots(seed: int, robots: list[sl.Model]) -> None:
    rng = np.random.default_rng(seed)
    at_once = 0
    for _ in range(100):
        G, g, friction = random_scene(rng, robots)
        found = sl.solve_contacts(G, g, friction)
        check(G, g, friction, found)
        at_once += found.turns == 0
    assert at_once > 60  # of 70 to 90: Newton's method is one


@pytest.mark.slow
def test_ten_thousand_scenes(robots: list[sl.Model]) -> None:
    rng = np.random.default_rng(2026)
    for _ in range(10_000):
        G, g, friction = random_scene(rng, robots)
        check(G, g, friction, sl.solve_contacts(G, g, friction))


def test_scenes_by_the_convex_law(robots: list[sl.Model]) -> None:
    """Its conditions hold at the minimum, and nowhere else."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        G, g, friction = random_scene(rng, robots)
        check(G, g, friction, sl.solve_contacts(G, g, friction, law="convex"), "convex")


@pytest.mark.parametrize("count", [1, 2])
def test_one_of_all_solutions(count: int) -> None:
    """Of one contact or two, and the only one where there is one alone."""
    rng = np.random.default_rng(count)
    alone = 0
    for _ in range(40 if count == 1 else 12):
        G, g, friction = random_matrix(rng, 3 * count), rng.normal(size=3 * count), rng.uniform(0, 1.5, count)
        known = all_solutions(G, g, friction)
        found = sl.solve_contacts(G, g, friction).impulses
        assert min(np.abs(found - each).max() for each in known) < 1e-7
        alone += len(known) == 1
    assert alone > 5


def test_a_slope() -> None:
    """A point slides down where the slope is steeper than its friction allows, and sticks where it is not."""
    for angle in (0.3, 0.4, 0.5, 0.6):
        g = 0.01 * np.array([np.sin(angle), 0, -np.cos(angle)])
        found = sl.solve_contacts(np.eye(3) / 2.0, g, [0.5])
        slide = max(0.0, np.sin(angle) - 0.5 * np.cos(angle)) * 0.01
        assert np.allclose(found.rates, [slide, 0, 0], atol=1e-12)
        assert np.allclose(found.impulses, 2 * np.array([slide - g[0], 0, -g[2]]), atol=1e-12)


def test_without_friction_it_is_a_quadratic_program() -> None:
    """Loops, limits, dry friction and smooth contacts, all in one."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        rows, contacts = 6, 3
        n = rows + 3 * contacts
        G, g = random_matrix(rng, n), rng.normal(size=n)
        dry = rng.uniform(0.1, 1, 2)
        lower, upper = np.array([-np.inf, -np.inf, 0, 0, *-dry]), np.array([np.inf] * 4 + [*dry])
        found = sl.solve_contacts(G, g, np.zeros(contacts), rows=rows, lower=lower, upper=upper)
        kept = [*range(rows), *range(rows + 2, n, 3)]
        A = np.linalg.cholesky(G[np.ix_(kept, kept)]).T
        ends = np.r_[lower, np.zeros(contacts)], np.r_[upper, np.full(contacts, np.inf)]
        truth = lsq_linear(A, -np.linalg.solve(A.T, g[kept]), ends, tol=1e-14).x
        assert found.status == Status.CONVERGED
        assert np.allclose(found.impulses[kept], truth, atol=1e-7)
        assert np.allclose(np.delete(found.impulses, kept), 0)
        assert np.abs(found.rates[:2]).max() < TOLERANCE  # loops


def test_compliance_is_on_the_diagonal() -> None:
    rng = np.random.default_rng(4)
    G, g, friction = random_matrix(rng, 9)[:, :], rng.normal(size=9), np.full(3, 0.7)
    soft = rng.uniform(0, 1, 9)
    found, same = sl.solve_contacts(G, g, friction, compliance=soft), sl.solve_contacts(G + np.diag(soft), g, friction)
    assert np.allclose(found.impulses, same.impulses, atol=1e-9)
    assert np.allclose(found.rates, G @ found.impulses + soft * found.impulses + g, atol=1e-12)


def test_the_soft_model_of_mujoco() -> None:
    """Its elliptic cones and its regularisation: forces of a tilted box that is thrown onto a plane."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco><option cone="elliptic" solver="Newton" iterations="200" tolerance="0" jacobian="dense" impratio="3"/>
        <worldbody><geom type="plane" size="5 5 1" friction="0.6 0 0" condim="3"/>
          <body pos="0 0 0.098"><freejoint/><geom type="box" size="0.2 0.15 0.1" friction="0.6 0 0" mass="2"/></body>
      </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    data.qvel[:] = 1.0, 0.4, -0.5, 0.2, 0.1, 0.3
    mujoco.mj_forward(model, data)
    count, n = data.ncon, data.nefc
    assert count >= 3 and n == 3 * count
    J = data.efc_J.reshape(n, model.nv)
    response = np.zeros((n, model.nv))
    mujoco.mj_solveM(model, data, response, J)
    g = J @ data.qacc_smooth - data.efc_aref
    order = (3 * np.arange(count)[:, None] + [1, 2, 0]).ravel()  # normals last
    G = (J @ response.T)[np.ix_(order, order)]
    friction = np.array([contact.friction[0] for contact in data.contact])
    found = sl.solve_contacts(G, g[order], friction, compliance=data.efc_R[order], law="convex")
    assert found.status == Status.CONVERGED
    assert np.abs(found.impulses - data.efc_force[order]).max() < 1e-6 * np.abs(data.efc_force).max()


def test_gauss_seidel_finds_the_same() -> None:
    rng = np.random.default_rng(6)
    for law in ("coulomb", "convex"):
        for _ in range(20):
            G, g, friction = random_matrix(rng, 12) + np.eye(12), rng.normal(size=12), rng.uniform(0, 0.5, 4)
            found = sl.solve_contacts(G, g, friction, method="pgs", law=law, max_turns=100)
            assert found.status == Status.CONVERGED
            assert np.allclose(found.impulses, sl.solve_contacts(G, g, friction, law=law).impulses, atol=1e-7)


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_lanes_of_a_batch_are_single_calls(law: Any) -> None:
    """Whatever the others of a packet need; where there is one solution, of contacts that are not too many."""
    rng = np.random.default_rng(7)
    G = random_matrix(rng, 12) + np.eye(12)
    g, friction = rng.normal(size=(5, 40, 12)), rng.uniform(0, 0.5, (40, 4))
    many = sl.solve_contacts(G, g, friction, law=law)
    assert many.impulses.shape == many.rates.shape == (5, 40, 12)
    assert many.status.shape == many.residuals.natural.shape == many.residuals.natural_at.shape == (5, 40)
    assert (many.status == int(Status.CONVERGED)).all()
    for k in np.ndindex(5, 40):
        one = sl.solve_contacts(G, g[k], friction[k[1]], law=law)
        assert np.allclose(many.impulses[k], one.impulses, atol=1e-7)
        assert np.allclose(many.rates[k], one.rates, atol=1e-7)


def test_where_nothing_slides_lanes_take_the_steps_of_single_calls() -> None:
    """Contacts and limits that hold in some lanes of a packet only: of one symmetric system, each lane has its own part."""
    rng = np.random.default_rng(18)
    G = 0.3 * random_matrix(rng, 14) + np.eye(14)
    g = rng.normal(size=(64, 14)) * np.r_[1, 1, np.tile([0.01, 0.01, 1], 4)]
    friction, ends = np.full(4, 10.0), {"rows": 2, "lower": np.zeros(2), "upper": np.full(2, np.inf)}
    many = sl.solve_contacts(G, g, friction, **ends)
    pushes, held = many.impulses[:, 4::3] > 0, many.impulses[:, :2] > 0
    assert 0.2 < pushes.mean() < 0.8 and 0.2 < held.mean() < 0.8
    assert (np.abs(many.rates[:, 2::3][pushes]) > TOLERANCE).mean() < 0.05  # nearly all stick
    for k in range(64):
        one = sl.solve_contacts(G, g[k], friction, **ends)
        assert one.iterations == many.iterations[k]
        assert np.abs(one.impulses - many.impulses[k]).max() < 1e-10


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_batches_of_a_box(law: Any) -> None:
    """Four points are more than it needs: of many solutions, each lane has one."""
    rng = np.random.default_rng(17)
    G, J = box()
    g, friction = rng.normal(size=(200, 6)) @ J.T, rng.uniform(0, 1.5, (200, 4))
    many = sl.solve_contacts(G, g, friction, law=law)
    for k in range(200):
        check(G, g[k], friction[k], sl.ContactImpulses(*(part[k] for part in many[:3]), 0), law)


def test_single_precision(robots: list[sl.Model]) -> None:
    """As good as its numbers allow."""
    rng = np.random.default_rng(8)
    solved = 0
    for _ in range(100):
        G, g, friction = (x.astype(np.float32) for x in random_scene(rng, robots))
        found = sl.solve_contacts(G, g, friction)
        assert found.impulses.dtype == np.float32 and np.isfinite(found.impulses).all()
        if found.status == Status.CONVERGED:
            missed = violations(*(x.astype(float) for x in (G, g, friction, found.impulses)))
            assert missed["closing"] < 1e-4 and missed["cone"] < 1e-5 * np.abs(found.impulses).max() + 1e-30
            solved += 1
    assert solved > 90
    G, J = box()
    many = sl.solve_contacts(*(x.astype(np.float32) for x in (G, rng.normal(size=(64, 6)) @ J.T, np.full(4, 0.5))))
    assert many.impulses.dtype == np.float32 and (many.status == int(Status.CONVERGED)).all()


def test_from_the_solution_nothing_is_to_be_done() -> None:
    rng = np.random.default_rng(9)
    G, J = box()
    g = J @ rng.normal(size=6) - np.tile([0, 0, 3.0], 4)
    found = sl.solve_contacts(G, g, np.full(4, 0.5))
    again = sl.solve_contacts(G, g, np.full(4, 0.5), start=found.impulses)
    assert found.iterations > 0 == again.iterations == again.turns
    assert np.allclose(again.impulses, found.impulses, atol=1e-12)


def test_masses_far_apart() -> None:
    """1 kg under 1000 kg, which is what first-order methods shy away from."""
    G, J = box()
    above = np.hstack([-J @ np.diag([1, 1, 1, 0, 0, 0]), np.zeros((12, 0))])
    J = np.block([[J, np.zeros((12, 6))], [above, box()[1]]])
    G = J @ np.diag([1.0] * 3 + [6.0] * 3 + [1e-3] * 3 + [6e-3] * 3) @ J.T
    g = J @ np.tile([0, 0, -0.01, 0, 0, 0], 2)
    found = sl.solve_contacts(G, g, np.full(8, 0.5))
    check(G, g, np.full(8, 0.5), found)
    assert np.isclose(found.impulses[14::3].sum(), 10.0) and np.isclose(found.impulses[2:12:3].sum(), 10.01)


def beside_limits(G: Array, g: Array, rng: np.random.Generator, speed: float) -> tuple[Array, Array, dict[str, Any]]:
    """The same contacts beside four limits of joints that no impulse brings near."""
    B = rng.normal(size=(4, len(g)))
    both = np.block([[B @ G @ B.T + np.eye(4), B @ G], [G @ B.T, G]])
    return both, np.r_[np.full(4, speed), g], {"rows": 4, "lower": np.zeros(4), "upper": np.full(4, np.inf)}


def test_what_is_far_does_not_make_it_harder(robots: list[sl.Model]) -> None:
    """Where Newton's method finds no way, paths are no longer for it."""
    rng = np.random.default_rng(1)
    turns = np.zeros(2, int)
    for _ in range(200):
        G, g, friction = random_scene(rng, robots)
        alone = sl.solve_contacts(G, g, friction)
        both, all_g, ends = beside_limits(G, g, rng, 1e6)
        beside = sl.solve_contacts(both, all_g, friction, **ends)
        assert beside.status == Status.CONVERGED and (beside.impulses[:4] == 0).all()
        turns += alone.turns, beside.turns
    assert turns[0] > 20 and turns[1] < 1.3 * turns[0]


def test_what_is_far_takes_no_digits(robots: list[sl.Model]) -> None:
    """In single precision its rates are rounded by more than others may be off."""
    rng = np.random.default_rng(8)
    solved = np.zeros(2, int)
    for _ in range(200):
        G, g, friction = random_scene(rng, robots)
        both, all_g, ends = beside_limits(G, g, rng, 4e3)
        for k, (each_G, each_g, rows) in enumerate(((G, g, {}), (both, all_g, ends))):
            found = sl.solve_contacts(*(x.astype(np.float32) for x in (each_G, each_g, friction)), **rows)
            solved[k] += found.status == Status.CONVERGED
    assert solved[1] > solved[0] - 6


def test_what_nothing_moves_does_no_harm() -> None:
    """Contacts of bodies that are both fixed have no inertia, and rates that are theirs whatever the impulses."""
    G, J = box()
    G = np.block([[np.zeros((3, 3)), np.zeros((3, 12))], [np.zeros((12, 3)), G]])
    for normal in (0.0, 1.0):
        g = np.r_[0, 0, normal, J @ [0, 0, -0.2, 0, 0, 0]]
        found = sl.solve_contacts(G, g, np.full(5, 0.5))
        assert found.status == Status.CONVERGED
        assert np.isclose(found.impulses[5::3].sum(), 0.2)
    g[2] = -1.0  # they close, and nothing can be done about it: that is said, and where
    found = sl.solve_contacts(G, g, np.full(5, 0.5), max_turns=3)
    assert np.isfinite(found.impulses).all() and found.status == Status.STOPPED
    assert found.residuals.dual == 1.0 and found.residuals.dual_at == 0
    assert np.isclose(found.impulses[5::3].sum(), 0.2)


def test_residuals_say_where() -> None:
    """Rows first, then contacts; a start that nobody improves on."""
    G, g = np.eye(8), np.array([0, 0.5, 0, 0, 1, 0, 0, -3.0])
    found = sl.solve_contacts(
        G, g, [0.5, 0.5], rows=2, lower=[-np.inf] * 2, upper=[np.inf] * 2, method="pgs", max_turns=0
    )
    assert found.status == Status.STOPPED and found.iterations == 0
    assert found.residuals.natural == found.residuals.dual == 3.0
    assert found.residuals.natural_at == found.residuals.dual_at == 3
    assert found.residuals.complementarity == 0 and found.residuals.complementarity_at == -1
    found = sl.solve_contacts(
        G, g, [0.5, 0.5], rows=2, lower=[-np.inf] * 2, upper=[np.inf] * 2, method="pgs", max_turns=0,
        start=[0, 0, 0, 0, 2, 0, 0, 3],
    )  # fmt: skip
    assert found.residuals.complementarity == 6.0 and found.residuals.complementarity_at == 2
    assert found.residuals.dual == 0.5 and found.residuals.dual_at == 1


def test_numbers_too_large_are_invalid() -> None:
    """What overflows ends, and says so; others of the batch are solved."""
    G, J = box()
    many = np.tile(G, (10, 1, 1))
    many[3, :, :] *= 1e300
    found = sl.solve_contacts(many, J @ [1, 0, -0.2, 0, 0, 1e10], np.full(4, 0.5))
    assert found.status[3] == int(Status.INVALID) or np.isfinite(found.impulses[3]).all()
    assert (np.delete(found.status, 3) == int(Status.CONVERGED)).all()


GOOD: dict[str, Any] = {"G": np.eye(3), "g": np.zeros(3), "friction": [0.5]}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"friction": [-0.5]}, "friction has the entry -0.5, expected 0 or more"),
        ({"friction": [[0.5], [-1]]}, "friction has the entry -1, expected 0 or more"),
        ({"friction": [0.5, 0.5]}, r"g has the shape \(3,\) and friction \(2,\), expected \(..., 0 \+ 3 nk\)"),
        ({"friction": 0.5}, r"friction \(\)"),
        ({"g": [0, np.nan, 0]}, r"g\[1\] is nan, expected finite numbers"),
        ({"G": np.full((3, 3), np.inf)}, r"G\[0, 0\] is inf"),
        ({"G": np.eye(4)}, r"G has shape \(4, 4\), expected \(..., 3, 3\)"),
        ({"g": np.zeros(4)}, r"g has the shape \(4,\)"),
        ({"g": np.zeros(4), "rows": 1}, "1 rows of joints, but no lower ends"),
        ({"G": np.eye(4), "g": np.zeros(4), "rows": 1, "lower": [1], "upper": [0]}, "lower end lies above"),
        ({"compliance": [0, -1, 0]}, "compliance has the entry -1, expected 0 or more"),
        ({"start": np.zeros(4)}, r"start has shape \(4,\)"),
        ({"law": "cone"}, "law is 'cone', expected one of 'coulomb', 'convex'"),
        ({"method": "newton"}, "method is 'newton', expected one of 'admm', 'pgs'"),
        ({"max_turns": -1}, "max_turns is -1, expected 0 or more"),
        ({"tolerance": 0.0}, "tolerance is 0.0, expected more than 0"),
    ],
)
def test_what_is_wrong_is_said(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.solve_contacts(**GOOD | wrong)


def test_kernels_run_as_python() -> None:
    rng = np.random.default_rng(12)
    for _ in range(3):
        G, g = random_matrix(rng, 6), rng.normal(size=6)
        inputs = ([0, 0, 5], G.ravel().tolist(), g.tolist(), [0.5, 0.8], [], [], [0.0] * 6, [0.0] * 6, [1e-9, 1e-12])
        x, *_ = interpret(_solve_contacts, problem_of(0, 2), inputs)
        assert np.allclose(np.array(x, float), sl.solve_contacts(G, g, [0.5, 0.8]).impulses, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("number", [F64, F32], ids=str)
def test_compiles_for_gpus(number: Number) -> None:
    ptx = compile_ptx(_solve_contacts, number, len(_solve_contacts.inputs))
    assert ptx.count(".visible .entry kernel(") == 1
    assert not re.search(r"\.local\b|\bcall\b|\.extern", ptx)
