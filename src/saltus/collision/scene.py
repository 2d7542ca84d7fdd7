"""STUB until the collision branch is merged: spheres at frames on flat ground."""
from __future__ import annotations
import numpy as np
from saltus.kernel import Layout, Part
from saltus.spatial.algebra import Vec3
from saltus.model.tree import canonical_rotation, seen_from
class Scene:
    def __init__(self, model, frames, radius=0.02, friction=0.7, restitution=0.0, pairs=()):
        self.model, self.frames, self.radius, self.friction, self.restitution = model, frames, radius, friction, restitution
def measure(problem):
    return {"nslot": len(problem.scene.frames)}
def fill(problem, ints, reals):
    s = problem.scene
    for k, (name, offset) in enumerate(s.frames):
        f = s.model.frames[s.model.frame_index(name)]
        j = s.model.joints[f.joint]
        P = seen_from(canonical_rotation(j.kind, j.axis), f.placement, np.eye(3))
        ints.slot_a[k], ints.slot_b[k] = f.joint, 0
        reals.slot_place[k] = Vec3(*(P[:3, :3] @ np.asarray(offset) + P[:3, 3]))
        reals.slot_radius[k] = s.radius
        reals.slot_friction[k], reals.slot_bounce[k] = s.friction, s.restitution
COLLISIONS = Part(("nslot",), Layout(nslot={"slot_a": None, "slot_b": None}), Layout(nslot={"slot_place": Vec3, "slot_radius": None, "slot_friction": None, "slot_bounce": None}), measure, fill)
