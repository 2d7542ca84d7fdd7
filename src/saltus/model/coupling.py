"""Mimic joints: a robot whose joints are not all free, seen as a tree whose joints are.

    q_tree = G q + g,      v_tree = G v,      tau = G^T tau_tree,      M = G^T M_tree G

Kernels run on the tree, in which a mimic joint is like any other. Around them, inputs that are motions are expanded by G,
and outputs along the degrees of freedom are contracted by its transpose. Steps along the manifold need none of it: they
run on the joints that are free. What solves for motions has no such form: other algorithms take its place (those of
coupled_tables.py, of which `aba` and constrained dynamics have some), or it solves with M instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saltus.model.joints import JointKind

if TYPE_CHECKING:
    from saltus.kernel import Algorithm
    from saltus.model.model import Model

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coupling:
    """The tree that kernels run on, and how its coordinates follow from the model's."""

    tree: Model
    free: Model
    G: Array  # (tree.nv, nv)

    def expand_configuration(self, model: Model, q: Any) -> Array:
        """q (..., nq) of the model as one of the tree."""
        q = np.asarray(q, dtype=np.float64)
        result = np.empty((*q.shape[:-1], self.tree.nq))
        for own, joint in zip(model.joints[1:], self.tree.joints[1:], strict=True):
            part = slice(joint.iq, joint.iq + joint.nq)
            if own.mimic is None:
                result[..., part] = q[..., own.iq : own.iq + own.nq]
            else:
                primary = model.joints[model.joint_index(own.mimic.primary)]
                angle = q[..., primary.iq]
                if primary.kind == JointKind.CONTINUOUS:
                    angle = np.arctan2(q[..., primary.iq + 1], q[..., primary.iq])
                angle = own.mimic.ratio * angle + own.mimic.offset
                turned = [np.cos(angle), np.sin(angle)] if joint.kind == JointKind.CONTINUOUS else [angle]
                result[..., part] = np.stack(turned, axis=-1)
        return result

    def run(self, algorithm: Algorithm, model: Model, inputs: tuple[Any, ...]) -> Any:
        """Expand the inputs, run on the tree, contract the outputs."""
        if algorithm.when_coupled is not None:
            return algorithm.when_coupled(model, *inputs)
        expanded = []
        for spec, value in zip(algorithm.inputs, inputs, strict=False):
            if spec.configuration:
                value = self.expand_configuration(model, value)
            elif spec.shape == ("nv",):
                value = np.asarray(value, dtype=np.float64) @ self.G.T
            elif "nv" in spec.shape:
                raise ValueError(f"{algorithm.name}: {spec.name} has the tree's sparsity, which mimic joints destroy")
            expanded.append(value)
        answer = algorithm.call(self.tree, tuple(expanded))
        answers = [answer] if len(algorithm.outputs) == 1 else list(answer)
        results = [self.contract(spec.shape, x) for spec, x in zip(algorithm.outputs, answers, strict=True)]
        return results[0] if len(results) == 1 else tuple(results)

    def contract(self, shape: tuple[str | int, ...], x: Array) -> Array:
        """Every axis that runs along the tree's degrees of freedom, contracted to the model's."""
        for axis, size in enumerate(shape, -len(shape)):
            if size == "nv":
                x = np.moveaxis(np.moveaxis(x, axis, -1) @ self.G, -1, axis)
        return x


def couple(model: Model) -> Coupling | None:
    """The coupling of a model that has mimic joints; None for one that has none."""
    if not any(joint.mimic for joint in model.joints):
        return None
    joints, free, kept = [model.joints[0]], [model.joints[0]], {0: 0}
    G = np.zeros((sum(joint.kind.nv for joint in model.joints[1:]), model.nv))
    iq = iv = 0
    for i, joint in enumerate(model.joints[1:], 1):
        joints.append(replace(joint, iq=iq, iv=iv, mimic=None))
        if joint.mimic is None:
            G[iv : iv + joint.nv, joint.iv : joint.iv + joint.nv] = np.eye(joint.nv)
            kept[i] = len(free)
            free.append(replace(joint, parent=0))
        else:
            G[iv, joint.iv] = joint.mimic.ratio
        iq, iv = iq + joint.kind.nq, iv + joint.kind.nv
    limit = {
        "velocity_limit": np.zeros(iv),
        "effort_limit": np.zeros(iv),
        "friction": np.zeros(iv),
    }
    own = np.abs(G).argmax(axis=1)
    first = {
        name: np.where(_own_rows(model), getattr(model, name)[own], 0.0)
        for name in ("armature", "damping", "stiffness", "spring_reference")
    }
    tree = model.replace(
        joints=tuple(joints), **first, reference_configurations={},
        lower_position_limit=np.full(iq, -np.inf), upper_position_limit=np.full(iq, np.inf), **limit,
    )  # fmt: skip
    bare = model.replace(joints=tuple(free), frames=model.frames[:1], loops=(), actuators=(), shapes=(), colliders=())
    return Coupling(tree, bare, G)


def _own_rows(model: Model) -> list[bool]:
    """For each degree of freedom of the tree, whether it is the model's own (rotors, dampers and springs sit on those)."""
    return [joint.mimic is None for joint in model.joints[1:] for _ in range(joint.kind.nv)]
