"""Two models made one: an arm on a base, a robot with a load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from saltus.model.checks import Array, ModelError, rigid_placement
from saltus.model.joints import Joint
from saltus.model.merging import placed, told_by_shape, with_load
from saltus.model.model import PER_COORDINATE, PER_DOF, Model
from saltus.model.parameters import refuse_several
from saltus.model.reduced import numbered
from saltus.model.shapes import Shape


def join_models(
    base: Model, added: Model, frame: str | int, placement: ArrayLike | None = None, *, prefix: str = ""
) -> Model:
    """One model of two: the world of `added` is fixed to a frame of `base`, at a `placement` (4, 4) in it [m].

    prefix: comes before all names of what is added, so that two arms of a kind fit on one base.

    Joints that are added come right after those that the frame's joint carries, in q and v as well, as in Pinocchio's
    `appendModel`; frames come last. Gravity is that of `base`. A pose that only one of them has is kept, the other neutral.

    A load in the hand of a robot, a body that is fixed to its world:

    >>> import numpy as np, saltus as sl
    >>> builder = sl.ModelBuilder("load")
    >>> _ = builder.add_body("universe", mass=2.0, inertia=0.01 * np.eye(3), name="box")
    >>> arm = sl.load_robot("arm")
    >>> loaded = sl.join_models(arm, builder.build(), arm.frames[-1].name)
    >>> loaded.nv, round(loaded.total_mass - arm.total_mass, 9)
    (7, 2.0)
    """
    for model in (base, added):
        if not isinstance(model, Model):
            raise TypeError(f"join_models: a model is a {type(model).__name__}, expected a saltus.Model")
        refuse_several(model, "join_models")
    if not isinstance(prefix, str):
        raise TypeError(f"join_models: prefix is {prefix!r}, expected a text")
    index = base.frame_index(frame)
    at = np.eye(4) if placement is None else rigid_placement(placement, "join_models: the placement")
    added, host = _renamed(added, prefix), base.frames[index].joint
    _check_names(base, added)

    last = _last_carried(base, host)
    shift = [*range(last + 1), *range(last + 1 + added.nb, base.njoints + added.nb)]
    carrier = [host, *range(last + 1, last + 1 + added.nb)]
    place = [base.frames[index].placement @ at, *(np.eye(4) for _ in range(added.nb))]
    own = [replace(joint, parent=shift[joint.parent]) for joint in base.joints[1:]]
    joints = [base.joints[0], *own]
    joints[host] = with_load(joints[host], added.joints[0], place[0])
    joints[last + 1 : last + 1] = [
        replace(joint, parent=carrier[joint.parent], placement=place[joint.parent] @ joint.placement)
        for joint in added.joints[1:]
    ]
    frames = [replace(frame, joint=shift[frame.joint]) for frame in base.frames]
    frames += [
        replace(
            frame, joint=carrier[frame.joint], placement=place[frame.joint] @ frame.placement,
            parent=index if frame.parent == 0 else len(base.frames) - 1 + frame.parent,
        )
        for frame in added.frames[1:]
    ]  # fmt: skip
    stay = [np.eye(4)] * base.njoints
    (colliders, apart), (others, others_apart) = told_by_shape(base), told_by_shape(added)
    before = base.joints[1 : last + 1]
    nq, nv = sum(joint.nq for joint in before), sum(joint.nv for joint in before)
    return base.replace(
        joints=numbered(joints),
        frames=tuple(frames),
        **{name: _inserted(getattr(base, name), getattr(added, name), nq) for name in PER_COORDINATE},
        **{name: _inserted(getattr(base, name), getattr(added, name), nv) for name in PER_DOF},
        reference_configurations=_poses(base, added, nq),
        loops=base.loops + added.loops,
        actuators=base.actuators + added.actuators,
        shapes=placed(base.shapes, shift, stay) + placed(added.shapes, carrier, place),
        colliders=placed(colliders, shift, stay) + placed(others, carrier, place),
        apart=apart + others_apart,
    )


def _last_carried(model: Model, joint: int) -> int:
    """The last one of the joints that this one carries, itself among them."""
    carried = {joint}
    for index, each in enumerate(model.joints):
        if each.parent in carried:
            carried.add(index)
    return max(carried)


def _inserted(own: Array, others: Array, place: int) -> Array:
    return np.concatenate([own[:place], others, own[place:]])


def _renamed(model: Model, prefix: str) -> Model:
    """The same with other names; the universe keeps its own."""
    if not prefix:
        return model

    def called(name: str) -> str:
        return prefix + name if name else name

    def shapes(those: Iterable[Shape]) -> tuple[Shape, ...]:
        return tuple(replace(x, name=called(x.name), frame=called(x.frame)) for x in those)

    def joint(x: Joint) -> Joint:
        return replace(x, name=called(x.name), mimic=x.mimic and replace(x.mimic, primary=called(x.mimic.primary)))

    universe = model.joints[0].name
    return model.replace(
        joints=(model.joints[0], *map(joint, model.joints[1:])),
        frames=(model.frames[0], *(replace(x, name=called(x.name)) for x in model.frames[1:])),
        loops=tuple(replace(x, name=called(x.name), frame_a=called(x.frame_a), frame_b=called(x.frame_b))
                    for x in model.loops),
        actuators=tuple(replace(x, name=called(x.name), joint=called(x.joint)) for x in model.actuators),
        shapes=shapes(model.shapes),
        colliders=shapes(model.colliders),
        apart=tuple(tuple(name if name == universe else called(name) for name in pair) for pair in model.apart),
    )  # fmt: skip


def _check_names(base: Model, added: Model) -> None:
    taken = {joint.name for joint in base.joints}
    for joint in added.joints[1:]:
        if joint.name in taken:
            raise ModelError(f"join_models: both models have a joint {joint.name!r}; give what is added a prefix")
    known = {(frame.name, frame.kind) for frame in base.frames}
    for frame in added.frames[1:]:
        if (frame.name, frame.kind) in known:
            raise ModelError(f"join_models: both models have a frame {frame.name!r}; give what is added a prefix")


def _poses(base: Model, added: Model, place: int) -> dict[str, Array]:
    ours, theirs = base.reference_configurations, added.reference_configurations
    return {
        name: _inserted(ours.get(name, base.neutral()), theirs.get(name, added.neutral()), place)
        for name in (*ours, *(name for name in theirs if name not in ours))
    }
