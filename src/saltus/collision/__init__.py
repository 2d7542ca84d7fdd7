"""Collision: what may touch, and where; terrain."""

from saltus.collision.queries import Contacts, find_contacts, in_collision, self_distance
from saltus.collision.scene import Scene
from saltus.collision.terrain import Box, Ground, HeightField, Ramp, Stairs, Terrain

__all__ = [
    "Box",
    "Contacts",
    "Ground",
    "HeightField",
    "Ramp",
    "Scene",
    "Stairs",
    "Terrain",
    "find_contacts",
    "in_collision",
    "self_distance",
]
