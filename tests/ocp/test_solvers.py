"""Solvers against the dense truth, against each other, in batches; how they end."""

from __future__ import annotations

import os
import pickle
import signal

import numpy as np
import pytest

from saltus.ocp.box_ddp import BoxDDP
from saltus.ocp.box_fddp import BoxFDDP
from saltus.ocp.ddp import DDP
from saltus.ocp.fddp import FDDP
from saltus.ocp.kkt import KKT, BoxKKT
from saltus.ocp.lqr import LQR, random_lqr
from saltus.ocp.problem import Log
from saltus.ocp.status import OCPStatus
from saltus.ocp.unicycle import Unicycle
from tests.ocp.problems import PROBLEMS, difficult, linear_step, start, unicycle

FAMILY = [DDP, FDDP, BoxDDP, BoxFDDP]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("solver", FAMILY)
def test_directions_are_those_of_the_dense_system(solver, name):
    """From starts with gaps, and from rollouts."""
    problem = PROBLEMS[name]
    xs, us = start(problem)
    rollout = FDDP(problem).solve(xs, us, max_iterations=1)
    for begin in ((xs, us), (rollout.xs, rollout.us)):
        truth = KKT(problem)
        truth.set_candidate(*begin)
        truth.compute_direction()
        one = solver(problem, reg_min=1e-30)
        one.set_candidate(*begin)
        assert one.compute_direction() == -1
        dx, du = linear_step(one)
        assert np.abs(dx - truth.dxs).max() < 1e-9 * max(1, np.abs(truth.dxs).max())
        assert np.abs(du - truth.dus).max() < 1e-9 * max(1, np.abs(truth.dus).max())
        slopes = one.direction.Vx + np.einsum("tij,tj->ti", one.direction.Vxx, dx - one.iterate.gaps)
        assert np.allclose(slopes, -truth.multipliers, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "unicycle"])
@pytest.mark.parametrize("solver", [*FAMILY, KKT])
def test_linear_problems_take_one_step(solver, name):
    problem = PROBLEMS[name]
    result = solver(problem).solve(*start(problem))
    truth = KKT(problem).solve()
    assert result.status == OCPStatus.SOLVED and result.iterations <= 3
    assert result.cost == pytest.approx(truth.cost, rel=1e-10)
    assert np.allclose(result.us, truth.us, atol=1e-7)
    values = problem.calc(result.xs, result.us)
    assert np.allclose(values.next, result.xs[1:], atol=1e-10) and values.costs.sum() == pytest.approx(result.cost)


@pytest.mark.parametrize("solver", [*FAMILY, KKT])
def test_the_unicycle(solver):
    """The optimum and the iterations that Crocoddyl 3.2.0 finds: its FDDP ends at its iteration 7, which begin at 0."""
    draw = np.random.default_rng(0)
    xs = np.array([draw.normal(size=3) for _ in range(21)])
    us = np.array([draw.normal(size=2) for _ in range(20)])
    for begin in ((np.zeros((21, 3)), None), (xs, us)):
        result = solver(unicycle()).solve(*begin)
        assert result.solved and result.cost == pytest.approx(249.56089793, rel=1e-9)
        assert solver not in (DDP, FDDP) or result.iterations == 8
    log = FDDP(unicycle()).solve(xs, us).log  # as Crocoddyl's
    assert np.allclose(log.cost[:3], [2.637e2, 2.497e2, 2.496e2], rtol=5e-4)
    assert np.allclose(
        log.stop, [2.423e3, 1.388e1, 8.899e-2, 1.246e-3, 2.633e-5, 6.449e-7, 1.687e-8, 4.561e-10], rtol=1e-3
    )
    assert np.allclose(log.ffeas[0], 3.107, rtol=1e-3) and (log.ffeas[1:] == 0).all()


CROCODDYL = [
    (8, 312.71804691691847, 8), (8, 1059.5612994338908, 8), (33, 1996.7213231328487, 43), (11, 4680.596357221527, 10),
    (87, 1958.943112534954, 87), (52, 3433.4878496588826, 51), (50, 1293.3665340106838, 48), (15, 6215.26567196823, 15),
]  # fmt: skip
"""What its 3.2.0 needs for these unicycles: iterations of FDDP, the cost, iterations of DDP."""


def test_iterations_are_those_of_crocoddyl():
    """Short steps, long ways: the same line search, the same regularisation."""
    draw = np.random.default_rng(0)
    for infeasible, cost, feasible in CROCODDYL:
        x0 = draw.normal(size=3) * [2, 2, 3]
        xs = np.array([draw.normal(size=3) for _ in range(31)])
        us = np.array([draw.normal(size=2) for _ in range(30)])
        for solver, iterations in ((FDDP, infeasible), (DDP, feasible)):
            result = solver(Unicycle(x0, 30)).solve(xs, us)
            assert result.solved and abs(result.iterations - iterations) <= 1
            assert result.cost == pytest.approx(cost, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_bounds(seed):
    """Linear problems with bounds: one quadratic program, which BoxKKT solves with all nodes at once."""
    problem = random_lqr(15, 6, 3, seed, bound=0.3)
    truth = BoxKKT(problem).solve()
    assert truth.solved and (np.abs(truth.us) > 0.3 - 1e-9).sum() > 5
    for solver in (BoxDDP, BoxFDDP):
        result = solver(problem).solve(*start(problem))
        assert result.solved and np.abs(result.us).max() <= 0.3
        assert result.cost == pytest.approx(truth.cost, rel=1e-9) and np.allclose(result.us, truth.us, atol=1e-5)
        assert result.iterations < 15
    free = random_lqr(15, 6, 3, seed)
    assert BoxDDP(free).solve().cost == pytest.approx(DDP(free).solve().cost, rel=1e-12)


def test_bounds_of_a_unicycle():
    problem = unicycle(u_lower=[-2.0, -2.0], u_upper=[2.0, 2.0])
    costs = [solver(problem).solve().cost for solver in (BoxDDP, BoxFDDP, BoxKKT)]
    assert np.allclose(costs, costs[0], rtol=1e-7)
    assert costs[0] > 1.5 * FDDP(problem).solve().cost  # who knows no bounds


@pytest.mark.parametrize("solver", [*FAMILY, KKT, BoxKKT])
def test_batches_are_as_single_ones(solver):
    draw = np.random.default_rng(3)
    x0 = draw.normal(size=(11, 3)) * [2, 2, 3]
    xs = draw.normal(size=(11, 13, 3))
    limits = {"u_lower": -3.0, "u_upper": 3.0}
    many = solver(Unicycle(x0, 12, **limits)).solve(xs, max_iterations=60)
    assert many.xs.shape == (11, 13, 3) and many.status.shape == many.cost.shape == many.iterations.shape == (11,)
    assert (many.status == OCPStatus.SOLVED).sum() > 6
    for i in range(0, 11, 3):
        one = solver(Unicycle(x0[i], 12, **limits)).solve(xs[i], max_iterations=60)
        assert one.status == many.status[i] and abs(one.iterations - many.iterations[i]) <= 1
        assert one.cost == pytest.approx(many.cost[i], rel=1e-8)
        assert np.allclose(one.us, many.us[i], atol=1e-4) and np.allclose(one.Vxx, many.Vxx[i], rtol=1e-3, atol=1e-4)
    linear = random_lqr(5, 4, 2, shape=(3, 2))
    assert solver(linear).solve().cost.shape == (3, 2)


def test_what_a_step_is_expected_to_bring():
    """Of linear problems exactly, but for short steps of FDDP that leave gaps: theirs is an estimate."""
    problem = PROBLEMS["odd"]
    rollout = problem.forward(*start(problem), np.zeros((8, 5)), np.zeros((7, 3, 5)), np.zeros((7, 3)), np.ones(1))
    for solver, begin, lengths in (
        (FDDP, start(problem), (1.0,)),
        (FDDP, (rollout.xs[0], rollout.us[0]), (1.0, 0.5, 0.125)),
        (DDP, (rollout.xs[0], rollout.us[0]), (1.0, 0.5, 0.125)),
        (KKT, start(problem), (1.0, 0.5, 0.125)),
    ):
        one = solver(problem, reg_min=1e-30)
        one.set_candidate(*begin)
        one.compute_direction()
        for a in lengths:
            gained = one.try_step(a)
            d = one.expected_improvement()
            assert gained == pytest.approx(a * (d[0] + 0.5 * a * d[1]), rel=1e-9)
        assert one.stopping_criteria() > 0


def test_the_log():
    lines = []
    result = FDDP(unicycle(), callbacks=[lambda solver: lines.append((solver.iteration, float(solver.cost)))]).solve()
    assert len(lines) == result.iterations == len(result.log.cost) and lines[0][0] == 0
    assert [cost for _, cost in lines] == result.log.cost.tolist() and lines[-1][1] == result.cost
    text = str(result.log).splitlines()
    assert text[0] == Log.HEADER and len(text) == 1 + result.iterations
    assert all(len(line.split()) == 8 for line in text) and text[-1].split()[1] == f"{result.cost:.5e}"


def test_it_prints(capsys):
    result = FDDP(unicycle()).solve(verbose=True)
    assert capsys.readouterr().out.splitlines() == str(result.log).splitlines()


def test_bad_nodes():
    """Regularisation helps as long as it can; then the node is named."""
    result = FDDP(difficult()).solve()
    assert result.status == OCPStatus.SOLVED or result.reason
    result = FDDP(difficult(), reg_max=1e-3).solve()
    assert result.status == OCPStatus.REGULARISATION and result.culprit == 3
    assert "node 3" in result.reason and "not positive definite" in result.reason
    assert str(result.status) == f"{result.status}" == "regularisation"


class Poisoned(Unicycle):
    """One whose derivatives are not finite at a node."""

    def calc_diff(self, xs, us, out=None):
        nodes = super().calc_diff(xs, us)
        nodes.Lx[..., 4, 1] = np.where(self.x0[..., 0] < 0, np.nan, nodes.Lx[..., 4, 1])
        return nodes

    def blame(self, xs, us, node):
        assert xs.shape == (11, 3) and us.shape == (10, 2)
        return f"the weight of node {node}"


@pytest.mark.parametrize("solver", [*FAMILY, KKT])
def test_derivatives_that_are_not_finite(solver):
    result = solver(Poisoned([-1.0, -1.0, 1.0], 10)).solve()
    assert result.status == OCPStatus.NOT_FINITE and result.culprit == 4
    assert result.reason == "node 4: its derivatives are not finite; the weight of node 4"
    assert np.isfinite(result.xs).all()


def test_one_of_a_batch_is_not_finite():
    x0 = np.array([[1.0, 1, 1], [-1, 1, 1], [2, 1, 1]])
    many = FDDP(Poisoned(x0, 10)).solve()
    assert many.status.tolist() == [0, 3, 0] and many.culprit.tolist() == [-1, 4, -1] and "problem 1" in many.reason
    assert many.cost[2] == pytest.approx(FDDP(Poisoned(x0[2], 10)).solve().cost, rel=1e-10)


@pytest.mark.parametrize("solver", FAMILY)
def test_one_of_a_batch_has_no_direction(solver):
    """The others do not notice."""
    good, bad = random_lqr(6, 4, 2, seed=5), difficult()
    stack = [np.stack([good.parts[name], bad.parts[name], good.parts[name]]) for name in ("A", "B", "Q", "R")]
    many = solver(LQR(good.x0, *stack), reg_max=1e-3).solve()
    assert many.status.tolist() == [0, 2, 0] and many.culprit.tolist() == [-1, 3, -1]
    one = solver(LQR(good.x0, *(array[2] for array in stack))).solve()
    assert many.cost[2] == pytest.approx(one.cost, rel=1e-10)


def test_few_iterations():
    result = FDDP(unicycle()).solve(max_iterations=2)
    assert result.status == OCPStatus.MAX_ITERATIONS and result.iterations == 2 and "2 iterations" in result.reason
    nothing = FDDP(unicycle()).solve(max_iterations=0)
    assert nothing.status == OCPStatus.MAX_ITERATIONS and nothing.xs.shape == (21, 3) and len(nothing.log.cost) == 0


def test_nothing_to_be_won():
    """A problem whose costs are none."""
    zero = np.zeros
    problem = LQR([1.0, 2.0], np.tile(np.eye(2), (3, 1, 1)), np.ones((3, 2, 1)), zero((4, 2, 2)), zero((3, 1, 1)))
    result = FDDP(problem).solve()
    assert result.status == OCPStatus.SOLVED and result.cost == 0


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda: Unicycle([np.nan, 0, 0], 5), r"x0\[0\] is nan, expected finite numbers"),
        (lambda: Unicycle([0.0, 0, 0], 5, weights=(np.inf, 1.0)), r"data\[0, 1\] is inf"),
        (lambda: Unicycle([0.0, 0, 0], 0), "expected .* T > 0"),
        (lambda: FDDP(unicycle()).solve(np.zeros((20, 3))), r"FDDP: xs has the shape \(20, 3\), expected \(..., 21, 3\)"),
        (lambda: FDDP(unicycle()).solve(us=np.full((20, 2), np.nan)), r"FDDP: us\[0, 0\] is nan"),
        (lambda: FDDP(unicycle(), threshold=1), "'threshold' is no option, expected one of th_stop"),
        (lambda: FDDP(unicycle(), th_stop=0.0), "th_stop is 0.0, expected more than 0"),
        (lambda: BoxDDP(unicycle(u_lower=1.0, u_upper=-1.0)).solve(), "u_lower lies above u_upper, first at control 0"),
        (lambda: LQR([0.0], *np.ones((4, 2, 1, 1))), "LQR: Q has the shape"),
    ],
)  # fmt: skip
def test_bad_problems(change, words):
    with pytest.raises((ValueError, TypeError), match=words):
        change()


def test_a_step_into_the_void():
    """Rollouts that overflow are no candidates; the solver gives up and says so."""
    problem = Unicycle([1e150, 1.0, 1.0], 5)
    result = FDDP(problem).solve(np.zeros((6, 3)), max_iterations=200)
    assert result.status in (OCPStatus.REGULARISATION, OCPStatus.MAX_ITERATIONS) and result.reason


@pytest.mark.parametrize("solver", [FDDP, KKT])
def test_interrupts(solver):
    """Ctrl-C leaves the last iterate."""

    def interrupt(it):
        if it.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    result = solver(unicycle(), callbacks=[interrupt]).solve()
    assert result.status == OCPStatus.INTERRUPTED and result.iterations == 3 and result.reason == "interrupted"
    again = solver(unicycle()).solve(max_iterations=3)
    assert (result.us == again.us).all() and result.cost == again.cost


def test_again_and_pickled():
    """A second call has what the first one had; problems and results travel."""
    problem = unicycle()
    solver = FDDP(problem)
    first = solver.solve()
    kept = first.K.copy()
    other = solver.solve(us=np.ones((20, 2)))
    assert (first.K == kept).all() and other.solved
    same = FDDP(pickle.loads(pickle.dumps(problem))).solve()
    assert (same.us == first.us).all() and pickle.loads(pickle.dumps(first)).status == OCPStatus.SOLVED
