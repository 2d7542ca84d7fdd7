"""What all solvers of optimal control share: iterates, regularisation, line search, when to stop, log, callbacks.

    direction -> expected improvement -> the first step length a in 1, 1/2, ... 1/512 that is good enough -> stop?

Regularisation grows where there is no direction, or where steps are short, and falls where they are long. Step lengths are
tried one by one at first, then as many at a time as a packet has lanes. A batch of problems goes through all this together:
what is one number for one problem is an array, and those that are done stay as they are.

| paper, Crocoddyl | code | |
|---|---|---|
| alpha | `length` | step length |
| Delta J = alpha (d_0 + alpha d_1 / 2) | `d`, (2, ...) | expected improvement of the cost |
| mu, preg, dreg | `preg`, `dreg` | added to V_xx, and to Q_uu |
| th_stop ... | `Options` | thresholds, with Crocoddyl's names and numbers |

Reference: C. Mastalli et al., Crocoddyl (2020), section III; C. Mastalli et al., A feasibility-driven approach to
control-limited DDP (2022), algorithm 1. `iterations` counts those that were done, Crocoddyl's `iter` begins at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Real
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saltus.arrays import Array, ArrayLike, real_numbers
from saltus.kernel.target import packet
from saltus.model.checks import whole_number
from saltus.ocp.problem import Expansion, Log, OCPResult, OptimalControlProblem, Trial, Values, log_line
from saltus.ocp.status import OCPStatus
from saltus.ocp.vector_problem import finite

HUGE = 1e30
"""What is larger counts as infinite."""

FEW = 10
"""Who allows fewer iterations (as in a control loop) does not ask why it has not converged: what says so takes its time."""

GAP = 1e-9
"""Smaller ones are not worth a word."""

ALONE = 6
"""So many step lengths of a single problem are tried one by one: most are good enough, and a packet takes as long as three
rollouts, five if it is the first one for a while (measured)."""


class Options(NamedTuple):
    """Thresholds of a solver."""

    th_stop: float = 1e-9
    """It has converged where |d_0 + d_1 / 2| is below."""
    th_acceptstep: float = 0.1
    """The share of the expected improvement that a step must bring."""
    th_acceptnegstep: float = 2.0
    """FDDP: how many times what is expected the cost may grow while gaps close."""
    th_grad: float = 1e-12
    """Slopes d_0 below are none: any step is good enough."""
    th_gaptol: float = 1e-16
    """Gaps below are none (KKT)."""
    th_stepdec: float = 0.5
    th_stepinc: float = 0.01
    """Regularisation falls after steps longer than the one, grows after steps no longer than the other."""
    reg_min: float = 1e-9
    reg_max: float = 1e9
    reg_incfactor: float = 10.0
    reg_decfactor: float = 10.0
    lengths: tuple[float, ...] = tuple((0.5 ** np.arange(10)).tolist())


class Iterate(NamedTuple):
    """Where a solver is: replaced as one, so that an interrupt leaves a whole one."""

    xs: Array
    us: Array
    gaps: Array
    cost: Any
    feasible: Any
    """Whether there are no gaps, and whether there were none before."""
    was_feasible: Any
    values: Any = None
    """What the rollout that led here knows beside (problem.py), if all of it comes from one."""


class Direction(NamedTuple):
    """What a backward pass answers."""

    K: Array
    k: Array
    Qu: Array
    Vx: Array
    Vxx: Array
    Vf: Array
    report: Array


class Solver:
    """Base of all solvers. A solver keeps the workspace and the iterate; the problem is only asked."""

    defaults: ClassVar[Options] = Options()

    def __init__(
        self,
        problem: OptimalControlProblem,
        callbacks: Sequence[Callable[[Solver], None]] = (),
        **options: Any,
    ) -> None:
        if not hasattr(problem, "calc_diff"):
            raise TypeError(
                f"{type(self).__name__}: the problem is {problem!r}, expected a ShootingProblem, an LQR ..."
            )
        if not (isinstance(callbacks, Sequence) and all(map(callable, callbacks))):
            raise TypeError(f"{type(self).__name__}: callbacks are {callbacks!r}, expected a list of functions")
        self.problem, self.callbacks = problem, tuple(callbacks)
        self.options = checked_options(self.defaults, options, type(self).__name__)
        self.lock = Lock()
        self.controlled = np.asarray(getattr(problem, "controlled", np.ones(problem.T)), float)
        self.iteration = -1
        self.trial: Trial | None = None
        self.expansion: Expansion | None = None

    def __getattr__(self, name: str) -> Any:
        if name in ("iterate", "batch", "running", "preg", "xs", "us", "cost"):
            raise AttributeError(
                f"{type(self).__name__}: there is no candidate yet, expected set_candidate or solve before"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}  # locks cannot travel

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=Lock())

    # ------------------------------------------------------------------------------------------------------- candidates

    def set_candidate(self, xs: ArrayLike | None = None, us: ArrayLike | None = None, feasible: bool = False) -> None:
        """Start from states (..., T + 1, nx), by default x0 at all nodes, and controls (..., T, nu), by default 0.
        `feasible`: they are a rollout of these controls, without gaps. The problem is asked now: change it before."""
        problem = self.problem
        if hasattr(problem, "check"):
            problem.check()
        x0 = finite(problem.x0, f"{type(self).__name__}: x0")
        shapes = {"xs": (problem.T + 1, problem.nx), "us": (problem.T, problem.nu)}
        given = {}
        for name, value in (("xs", xs), ("us", us)):
            shape = shapes[name]
            if value is not None:
                array = given[name] = finite(value, f"{type(self).__name__}: {name}")
                if array.shape[-2:] != shape:
                    raise ValueError(
                        f"{type(self).__name__}: {name} has the shape {array.shape}, expected (..., {shape[0]}, {shape[1]})"
                    )
        leads = {"x0": x0.shape[:-1], "the problem": getattr(problem, "batch", ())}
        leads |= {name: array.shape[:-2] for name, array in given.items()}
        try:
            batch = np.broadcast_shapes(*leads.values())
        except ValueError:
            raise ValueError(
                f"{type(self).__name__}: leading axes do not go together: "
                + ", ".join(f"{name} {shape}" for name, shape in leads.items())
            ) from None
        start = given.get("xs", x0[..., None, :])
        states = np.array(np.broadcast_to(start, (*batch, *shapes["xs"])))
        controls = np.array(np.broadcast_to(given.get("us", 0.0), (*batch, *shapes["us"])))
        gaps, cost, values = self.find_gaps(states, controls)
        if feasible:
            gaps = np.zeros_like(gaps)
        self.batch, count = batch, int(np.prod(batch))
        self.chunk = max(1, packet(64).width // max(1, count))
        self.alone = ALONE if count == 1 else 0
        self.iterate = Iterate(states, controls, gaps, cost, self.all_of(feasible), self.all_of(False), values)
        self.preg = self.dreg = self.all_of(self.options.reg_min)
        self.d = np.zeros((2, *batch))
        self.stop = self.all_of(np.nan)
        self.statuses, self.culprits = self.all_of(int(OCPStatus.MAX_ITERATIONS)), self.all_of(-1)
        self.running, self.counts = self.all_of(True), self.all_of(0)
        self.length = self.all_of(1.0)
        self.gained = self.expected = self.all_of(0.0)

    def all_of(self, value: Any) -> Any:
        """(...) the value for each problem; of a single one a scalar, with which NumPy is quicker than with an array."""
        return np.full(self.batch, value)[()]

    def find_gaps(self, xs: Array, us: Array) -> tuple[Array, Array, Any]:
        """(..., T + 1, ndx), the cost (...), and what else is known there (problem.py)."""
        problem = self.problem
        values = problem.calc(xs, us)
        lost = self.lost_node(values)
        if lost is not None:
            node, words = lost[-1], self.blamed(xs[lost[:-1]], us[lost[:-1]], lost[-1])
            raise ValueError(
                f"{type(self).__name__}: the start is lost at node {node}: what it leads to is not finite{words}"
            )
        x0 = np.broadcast_to(problem.x0, xs[..., 0, :].shape)
        ends = np.concatenate([x0[..., None, :], values.next], -2)
        return problem.difference(xs, ends), values.costs.sum(-1), values.values

    @staticmethod
    def lost_node(values: Values) -> tuple[int, ...] | None:
        """The first node whose numbers are not finite: problem of a batch, and node."""
        bad = ~np.isfinite(values.costs)
        bad[..., :-1] |= ~np.isfinite(values.next).all(-1)
        return tuple(np.argwhere(bad)[0].tolist()) if bad.any() else None

    @property
    def xs(self) -> Array:
        return self.iterate.xs

    @property
    def us(self) -> Array:
        return self.iterate.us

    @property
    def cost(self) -> Any:
        return self.iterate.cost

    # ------------------------------------------------------------------------------- what a solver is made of: its parts

    def compute_direction(self, recalculate: bool = True) -> Any:
        """The direction at the iterate: (...) the node where there is none, or -1. `recalculate`: derivatives as well."""
        raise NotImplementedError

    def roll(self, lengths: Array) -> Trial:
        """Candidates for some step lengths."""
        raise NotImplementedError

    def improvements(self, found: Trial, sound: Any) -> Array:
        """d (2, ...) for candidates; those that are not `sound` may hold anything."""
        raise NotImplementedError

    def acceptable(self, d: Array, expected: Array, gained: Array) -> Any:
        """(...) whether steps are good enough."""
        raise NotImplementedError

    def advance(self, length: Array, found: Trial) -> tuple[Array, Any]:
        """Gaps and feasibility after steps of these lengths (...)."""
        raise NotImplementedError

    def outcome(self) -> Direction:
        """Gains and value function for the result."""
        raise NotImplementedError

    def take_memory(self, result: OCPResult | None) -> None:
        """That of the last result, if there is one to be had."""

    # ---------------------------------------------------------------------------------------------------- single strokes

    def try_step(self, length: float = 1.0) -> Any:
        """The improvement of the cost (...) that a step of this length brings; the candidate is `trial`."""
        self.trial = self.roll(np.array([length]))
        return self.cost - self.trial.costs[0]

    def expected_improvement(self) -> Array:
        """d (2, ...): a step of length a improves the cost by a (d_0 + a d_1 / 2), to second order. Of FDDP, with the
        candidate of the last `try_step`."""
        found = Trial(self.xs, self.us, self.cost) if self.trial is None else candidate(self.trial, -1)
        self.d = self.improvements(found, np.ones(self.batch, bool))
        return self.d

    def stopping_criteria(self) -> Any:
        """(...) what is still to be gained."""
        self.stop = np.abs(self.d[0] + 0.5 * self.d[1])
        return self.stop

    # -------------------------------------------------------------------------------------------------------------- solve

    def solve(
        self,
        xs: ArrayLike | None = None,
        us: ArrayLike | None = None,
        max_iterations: int = 100,
        feasible: bool = False,
        regularisation: float | None = None,
        verbose: bool = False,
        out: OCPResult | None = None,
    ) -> OCPResult:
        """Iterate until it has converged. `xs`, `us`, `feasible`: see `set_candidate`. `verbose`: print a line an iteration.

        out: the last result of this solver, if nobody needs it any more: the new one takes its memory, that of gains and
            value functions.

        Ctrl-C ends it after the iteration's part that is being computed; the result is the last iterate.
        """
        if not self.lock.acquire(blocking=False):
            raise RuntimeError(f"{type(self).__name__}: it is solving already, expected a solver for each thread")
        try:
            return self.iterated(xs, us, max_iterations, feasible, regularisation, verbose, out)
        finally:
            self.lock.release()

    def iterated(
        self,
        xs: ArrayLike | None,
        us: ArrayLike | None,
        max_iterations: int,
        feasible: bool,
        regularisation: float | None,
        verbose: bool,
        out: OCPResult | None,
    ) -> OCPResult:
        """See `solve`."""
        most = whole_number(max_iterations, f"{type(self).__name__}: max_iterations")
        if most < 0:
            raise ValueError(f"{type(self).__name__}: max_iterations is {most}, expected none or more")
        rows: list[tuple[Any, ...]] = []
        self.set_candidate(xs, us, feasible)
        self.take_memory(out)
        if regularisation is not None:
            if not (isinstance(regularisation, Real) and 0.0 <= regularisation < np.inf):
                raise ValueError(
                    f"{type(self).__name__}: regularisation is {regularisation!r}, expected a number, not negative"
                )
            self.preg = self.dreg = self.all_of(float(regularisation))
        recalculate = True
        try:
            for self.iteration in range(most):
                if not self.find_direction(recalculate):
                    break
                ffeas = np.abs(self.iterate.gaps).max((-1, -2))
                before = self.running.copy()
                recalculate = self.search()
                self.counts = self.counts + before
                self.adapt()
                self.stopping_criteria()
                rows.append(
                    (
                        self.cost,
                        self.stop,
                        np.abs(self.d[0]),
                        self.preg,
                        self.dreg,
                        self.length,
                        ffeas,
                        self.expected,
                        self.gained,
                    )
                )
                if verbose:
                    self.print_line(rows[-1])
                for callback in self.callbacks:
                    callback(self)
                self.end(self.iterate.was_feasible & (self.stop < self.options.th_stop), OCPStatus.SOLVED)
                if not anyone(self.running):
                    break
        except KeyboardInterrupt:
            self.end(self.running, OCPStatus.INTERRUPTED)
        return self.result(rows)

    def find_direction(self, recalculate: bool) -> bool:
        """With as much regularisation as it takes; False if nobody is left."""
        while True:
            nodes = self.compute_direction(recalculate)
            bad = self.running & (nodes >= 0)
            if not anyone(bad):
                return anyone(self.running)
            recalculate = False
            self.regularise(bad, self.options.reg_incfactor)
            self.end(bad & (self.preg >= self.options.reg_max), OCPStatus.REGULARISATION, nodes)

    def search(self) -> bool:
        """The line search; whether somebody has moved."""
        left, lengths = self.running, self.options.lengths
        starts = [*range(self.alone), *range(self.alone, len(lengths), self.chunk)]
        for start, stop in pairwise([*starts, len(lengths)]):
            self.trial = self.roll(np.array(lengths[start:stop]))
            for n, length in enumerate(lengths[start:stop]):
                left = left & ~self.take(candidate(self.trial, n), length, left)
                if not anyone(left):
                    return True
        return anyone(self.running & ~left)

    def take(self, found: Trial, length: float, left: Any) -> Any:
        """Moves those that are `left` and whose candidate is good enough, and answers which."""
        sound = abs(found.costs) < HUGE
        d = self.improvements(found, sound)
        expected = length * (d[0] + 0.5 * length * d[1])
        gained = self.cost - found.costs  # not finite where it is not sound
        good, seen = sound & left & self.acceptable(d, expected, gained), sound & left
        self.d = choose(seen, d, self.d, 1)
        self.gained, self.expected = choose(seen, gained, self.gained), choose(seen, expected, self.expected)
        self.length = choose(left, np.float64(length), self.length)
        if anyone(good):
            old = self.iterate
            gaps, feasible = self.advance(self.length, found)
            self.iterate = Iterate(
                choose(good, found.xs, old.xs),
                choose(good, found.us, old.us),
                choose(good, gaps, old.gaps),
                choose(good, found.costs, old.cost),
                choose(good, feasible, old.feasible),
                choose(good, old.feasible, old.was_feasible),
                found.values if good.all() else None,
            )
        return good

    def set_aside(self, expansion: Expansion) -> Any:
        """Problems whose derivatives are not finite are done, and get others. (...) the node to blame, or -1."""
        bad = np.zeros((*self.batch, self.problem.T + 1), bool)
        for array in expansion[:7]:
            own = ~np.isfinite(array).all(tuple(range(len(self.batch) + 1, array.ndim)))
            bad[..., : own.shape[-1]] |= own
        nodes = np.where(bad.any(-1), bad.argmax(-1), -1)
        sound: Any = (np.nan_to_num(array, posinf=0.0, neginf=0.0) for array in expansion[:7])
        self.expansion = Expansion(*sound)
        self.end(nodes >= 0, OCPStatus.NOT_FINITE, nodes)
        return nodes

    def adapt(self) -> None:
        """Regularisation after a step."""
        options, running = self.options, self.running
        self.regularise(running & (self.length > options.th_stepdec), 1 / options.reg_decfactor)
        short = running & (self.length <= options.th_stepinc)
        self.regularise(short, options.reg_incfactor)
        self.end(short & (self.preg >= options.reg_max), OCPStatus.REGULARISATION)

    def regularise(self, where: Any, factor: float) -> None:
        if anyone(where):
            bounded = np.minimum(np.maximum(self.preg * factor, self.options.reg_min), self.options.reg_max)
            self.preg = self.dreg = choose(where, bounded, self.preg)

    def end(self, who: Any, status: OCPStatus, nodes: Any = -1) -> None:
        """These problems are done, and which nodes are to blame."""
        who = who & self.running
        if anyone(who):
            self.statuses = np.where(who, int(status), self.statuses)[()]
            self.culprits = np.where(who, nodes, self.culprits)[()]
            self.running = self.running & ~who

    def print_line(self, row: tuple[Any, ...]) -> None:
        if self.iteration % 10 == 0:
            print(Log.HEADER)
        print(log_line(self.iteration, *(float(np.ravel(x)[0]) for x in row[:7])), flush=True)

    def result(self, rows: list[tuple[Any, ...]]) -> OCPResult:
        self.find_culprits()
        found, iterate = self.outcome(), self.iterate
        columns = zip(*rows, strict=True) if rows else [()] * len(Log._fields)
        log = Log(*(np.array(column).reshape(len(rows), *self.batch) for column in columns))
        one = self.batch == ()
        return OCPResult(
            iterate.xs, iterate.us, float(iterate.cost) if one else iterate.cost,
            int(self.counts) if one else self.counts,
            OCPStatus(int(self.statuses)) if one else self.statuses,
            int(self.culprits) if one else self.culprits,
            self.explain(), iterate.gaps, found.K, found.k, found.Vx, found.Vxx, log,
        )  # fmt: skip

    def explain(self) -> str:
        """Why it stopped, in words, of the first problem that failed; what a problem's `blame` says of the node as well."""
        failed = np.flatnonzero(self.statuses != OCPStatus.SOLVED)
        if not len(failed):
            return ""
        first = failed[0]
        status, node = OCPStatus(int(self.statuses.flat[first])), int(self.culprits.flat[first])
        where = f" of problem {first}" if self.batch else ""
        if status == OCPStatus.INTERRUPTED:
            return "interrupted"
        place = np.unravel_index(first, self.batch) if self.batch else ()
        if status == OCPStatus.NOT_FINITE:
            words = f"node {node}{where}: its derivatives are not finite"
        elif status == OCPStatus.REGULARISATION and not self.stuck.flat[first]:
            why = "Q_uu is not positive definite, or V not finite"
            words = f"node {node}{where}: {why}, even with the largest regularisation"
        else:
            words = f"not converged after {self.counts.flat[first]} iterations{where}"
            if status == OCPStatus.REGULARISATION:
                words = f"no step is good enough{where}, even with the largest regularisation"
            if node < 0:
                return words
            gaps = np.abs(self.iterate.gaps[place]).max(-1)
            if gaps.max() > GAP:
                words += f"; the largest gap, {gaps.max():.3g}, is before node {gaps.argmax()}"
            words += f"; node {node} costs most"
        return words + self.blamed(self.xs[place], self.us[place], node)

    def blamed(self, xs: Array, us: Array, node: int) -> str:
        """What the problem says of a node."""
        blame = getattr(self.problem, "blame", None)
        return "" if blame is None else f"; {blame(xs, us, node)}"

    def find_culprits(self) -> None:
        """Of problems that found no end: what costs most."""
        rejected = self.statuses == int(OCPStatus.REGULARISATION)
        self.stuck = (self.culprits < 0) & (rejected | (self.statuses == int(OCPStatus.MAX_ITERATIONS)))
        asked = self.stuck & (rejected | (self.counts >= FEW))
        if anyone(asked):
            costs = self.problem.calc(self.xs, self.us).costs
            self.culprits = np.where(asked, costs.argmax(-1), self.culprits)


def checked_options(defaults: Options, given: dict[str, Any], solver: str) -> Options:
    """The options of a solver, or what is wrong with them."""
    unknown = set(given) - set(Options._fields)
    if unknown:
        raise TypeError(f"{solver}: {min(unknown)!r} is no option, expected one of {', '.join(Options._fields)}")
    options = defaults._replace(**given)
    for name, value in options._asdict().items():
        if not (real_numbers(value, f"{solver}: {name}") > 0).all():
            raise ValueError(f"{solver}: {name} is {value}, expected more than 0")
    lengths = np.asarray(options.lengths)
    if lengths.ndim != 1 or not len(lengths) or not (lengths <= 1).all():
        raise ValueError(f"{solver}: lengths are {options.lengths}, expected a list of numbers up to 1")
    if not options.reg_min <= options.reg_max < np.inf:
        raise ValueError(f"{solver}: reg_max is {options.reg_max}, expected a number, not below reg_min")
    for name in ("reg_incfactor", "reg_decfactor"):
        if not 1 < getattr(options, name) < np.inf:
            raise ValueError(f"{solver}: {name} is {getattr(options, name)}, expected a number above 1")
    return options


def refuse_bad_bounds(solver: Solver) -> None:
    """Bounds of controls are (nu,), and leave room."""
    problem, name = solver.problem, type(solver).__name__
    lower, upper = np.asarray(problem.u_lower, float), np.asarray(problem.u_upper, float)
    for bound, array in (("u_lower", lower), ("u_upper", upper)):
        if array.shape != (problem.nu,):
            raise ValueError(f"{name}: {bound} has the shape {array.shape}, expected {(problem.nu,)}")
    wrong = np.flatnonzero(~(lower <= upper))
    if len(wrong):
        raise ValueError(f"{name}: u_lower lies above u_upper, first at control {wrong[0]}")


def candidate(trial: Trial, n: int) -> Trial:
    """That of the n-th step length alone, without their axis."""
    values = None if trial.values is None else type(trial.values)(*(array[n] for array in trial.values))
    return Trial(trial.xs[n], trial.us[n], trial.costs[n], values)


def anyone(mask: Any) -> bool:
    """Whether it holds for some problem; of a single one, `any` would take its time."""
    return bool(mask) if mask.ndim == 0 else bool(mask.any())


def choose(mask: Any, new: Any, old: Any, axis: int = 0) -> Any:
    """Problem by problem, whose axes begin at `axis`."""
    if mask.ndim == 0:
        return new if mask else old
    return np.where(mask.reshape(mask.shape + (1,) * (new.ndim - mask.ndim - axis)), new, old)
