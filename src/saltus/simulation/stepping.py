"""Many steps in one call: semi-implicit Euler under torques that are known ahead.

    v+ = v + h aba(q, v, tau_k + stiffness (rest - q) - damping v),      q+ = q (+) h v+

The state lives in the results: each step reads the row before and writes its own, whose velocities first hold torques, then
accelerations. `acting`: 1 if springs act, else 0; the same of dampers. `lost` is 1 where numbers are not finite, else 0.
"""

from __future__ import annotations

from saltus.dynamics.aba import WORK, articulate
from saltus.dynamics.passive import spring_torque
from saltus.kernel import kernel, ld, less, lift, select, st, tail, zero
from saltus.model.manifold import difference_joint, step_joint
from saltus.model.tree import HEAVY, algorithm


@kernel
def passive(tree, k, q, v, acting):
    """The torque of a spring and a damper."""
    return ld(acting, 0) * spring_torque(tree, k, q) - ld(acting, 1) * (tree.damping[k] * ld(v, k))


@kernel
def step_on(tree, q, v, h, w, new_q, new_v):
    """One step from q and v on; `new_v` holds the torques. Returns whether the robot is lost."""
    total = zero(q)
    articulate(tree, q, v, new_v, None, w, new_v, None)
    for k in range(tree.nv):
        speed = ld(v, k) + h * ld(new_v, k)
        total = total + speed
        st(new_v, k, speed)
    for i in range(1, tree.nj):
        step_joint(tree, i, q, new_v, h, new_q)
    return select(less(-1.0, total - total), lift(0.0, total), lift(1.0, total))


@algorithm(
    inputs={"clock": "steps int", "q": "nq", "v": "nv", "acting": "2", "dt": "1", "tau": "nv"},
    outputs={"qs": "steps nq", "vs": "steps nv", "lost": "steps"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
)
def _steps(tree, clock, q, v, acting, dt, tau, w, qs, vs, lost):
    """Under torques that stay the same. `clock`: its first number is that of the steps."""
    for step in range(clock[0]):
        new_q, new_v = tail(qs, step * tree.nq), tail(vs, step * tree.nv)
        for k in range(tree.nv):
            st(new_v, k, ld(tau, k) + passive(tree, k, q, v, acting))
        st(lost, step, step_on(tree, q, v, ld(dt, 0), w, new_q, new_v))
        q, v = new_q, new_v


@algorithm(
    inputs={"clock": "steps int", "q": "nq", "v": "nv", "acting": "2", "dt": "1", "tau": "steps nv"},
    outputs={"qs": "steps nq", "vs": "steps nv", "lost": "steps"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
)
def _steps_along(tree, clock, q, v, acting, dt, tau, w, qs, vs, lost):
    """Under torques that change from step to step."""
    for step in range(clock[0]):
        new_q, new_v, now = tail(qs, step * tree.nq), tail(vs, step * tree.nv), tail(tau, step * tree.nv)
        for k in range(tree.nv):
            st(new_v, k, ld(now, k) + passive(tree, k, q, v, acting))
        st(lost, step, step_on(tree, q, v, ld(dt, 0), w, new_q, new_v))
        q, v = new_q, new_v


@algorithm(
    inputs={
        "clock": "steps int", "q": "nq", "v": "nv", "acting": "2", "dt": "1", "tau": "nv", "kp": "nv", "kd": "nv",
        "targets": "steps nq",
    },
    outputs={"qs": "steps nq", "vs": "steps nv", "lost": "steps"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
)  # fmt: skip
def _steps_towards(tree, clock, q, v, acting, dt, tau, kp, kd, targets, w, qs, vs, lost):
    """Under torques tau + kp (target (-) q) - kd v."""
    for step in range(clock[0]):
        new_q, new_v, target = tail(qs, step * tree.nq), tail(vs, step * tree.nv), tail(targets, step * tree.nq)
        for i in range(1, tree.nj):
            difference_joint(tree, i, q, target, new_v)
        for k in range(tree.nv):
            pull = ld(kp, k) * ld(new_v, k) - ld(kd, k) * ld(v, k)
            st(new_v, k, ld(tau, k) + pull + passive(tree, k, q, v, acting))
        st(lost, step, step_on(tree, q, v, ld(dt, 0), w, new_q, new_v))
        q, v = new_q, new_v
