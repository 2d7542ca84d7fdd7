"""What one part of a scene looks like on a page of viser: added once, moved from frame to frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from saltus.model.checks import Array
from saltus.view.mesh_files import Mesh
from saltus.view.scene import AXES, CENTER_OF_MASS, CONES, FORCES, OBJECTS, SUPPORT, Scene, poses
from saltus.view.solids import triangulated
from saltus.view.terrain import EDGE_SHADE

COLORS = {CENTER_OF_MASS: (242, 169, 0), FORCES: (214, 47, 47), CONES: (59, 130, 196), SUPPORT: (47, 158, 95)}
SEE_THROUGH = 0.35
AXIS_LENGTH, AXIS_WIDTH = 0.12, 0.05  # of a frame, in sizes of a robot; of its length


class Drawn:
    """A part of a scene on a page. `size` and `floor` are those of the whole scene."""

    def __init__(self, page: Any, part: Scene, name: str, size: float, floor: float) -> None:
        self.page, self.part, self.name, self.size, self.floor = page, part, name, size, floor
        self.groups: dict[str, list[Any]] = {}  # handles by the extras that they are of
        self.solids = [
            self._add_solid(index, np.flatnonzero(part.opacity == opacity))
            for opacity in np.unique(part.opacity)  # apart, for see-through ones are drawn in another way
            for index in range(len(part.solids))
        ]
        self.terrain = [self._add_terrain(index) for index in range(len(part.terrain_places))]
        self._add_center()
        self._add_contacts()
        self._add_objects()

    def draw(self, frame: int, back: Array) -> None:
        """Moves everything to where it is in a frame, and by `back` (3,)."""
        part = self.part
        shapes = [solid.shape for solid in part.solids]
        local = np.reshape([shape.placement for shape in shapes], (-1, 4, 4))
        moved = poses(part.placements[:, frame, [shape.joint for shape in shapes]] @ local)
        for index, robots, handle in self.solids:
            handle.batched_positions = moved[robots, index, :3] + back
            handle.batched_wxyzs = moved[robots, index][:, [6, 3, 4, 5]]
        for place, terrain in zip(part.terrain_places, self.terrain, strict=True):
            terrain.position = place + back
        self._draw_center(frame, back)
        self._draw_contacts(frame, back)
        self._draw_objects(frame, back)

    def dim(self, factor: float) -> None:
        """Makes the robots as see-through as they are in the scene, times this."""
        for index, robots, handle in self.solids:
            opacity = float(self.part.solids[index].shape.color[3] * self.part.opacity[robots[0]] * factor)
            handle.opacity = opacity if opacity < 1 else None

    # ------------------------------------------------------------------------------------------------ robots, terrain

    def _add_solid(self, index: int, robots: NDArray[np.intp]) -> tuple[int, NDArray[np.intp], Any]:
        """One solid of some of the robots: its index, these robots, its handle."""
        solid = self.part.solids[index]
        name = f"robots_{robots[0]}/{index}_{solid.shape.name.replace('/', '_')}"
        return index, robots, self._add_instances(name, triangulated(solid), solid.shape.color * 255, len(robots))

    def _add_instances(self, name: str, mesh: Mesh, color: Any, count: int, **options: Any) -> Any:
        return self.page.add_batched_meshes_simple(
            f"{self.name}/{name}", mesh.vertices, mesh.faces, np.tile([1.0, 0, 0, 0], (count, 1)), np.zeros((count, 3)),
            batched_colors=tuple(round(part) for part in color[:3]), lod="off", side="double",
            receive_shadow=False, **options,  # the shadow map is too coarse for a robot's shadow on itself
        )  # fmt: skip

    def _add_terrain(self, index: int) -> Any:
        """A frame with the terrain, and the paths among the objects, at one of its places."""
        frame = self.page.add_frame(f"{self.name}/terrain/{index}", show_axes=False)
        for k, surface in enumerate(self.part.surfaces):
            self._add_instances(f"terrain/{index}/{k}", surface.mesh, surface.color * 255, 1)
            self._add_lines(f"terrain/{index}/{k}_edges", surface.edges, EDGE_SHADE * surface.color)
        for k, path in enumerate(self.part.objects.paths):
            points = np.asarray(path.points)
            lines = np.stack([points[:-1], points[1:]], axis=1)
            handle = self._add_lines(f"terrain/{index}/path_{k}", lines, np.array(path.color), path.width)
            self.groups.setdefault(OBJECTS, []).append(handle)
        return frame

    def _add_lines(self, name: str, lines: Array, color: Array, width: float | None = None) -> Any:
        options: dict[str, Any] = {} if width is None else {"thickness": width, "thickness_units": "world"}
        rgb = tuple(round(255 * float(part)) for part in color[:3])
        return self.page.add_line_segments(f"{self.name}/{name}", lines, rgb, **options)

    # ----------------------------------------------------------------------------------------------------- the extras

    def _add_center(self) -> None:
        robots, color, size = self.part.robots, COLORS[CENTER_OF_MASS], self.size
        ball, disc = _ball(0.022 * size), _disc(0.02 * size, 0.002 * size)
        self.balls = self._add_instances("center/ball", ball, color, robots, cast_shadow=False)
        self.discs = self._add_instances("center/disc", disc, color, robots, cast_shadow=False)
        self.plumbs = self.page.add_line_segments(f"{self.name}/center/plumb", np.zeros((robots, 2, 3)), color)
        self.groups[CENTER_OF_MASS] = [self.balls, self.discs, self.plumbs]

    def _draw_center(self, frame: int, back: Array) -> None:
        top = self.part.center[:, frame] + back
        ground = top.copy()
        ground[:, 2] = self.floor + 0.002 * self.size + back[2]
        self.balls.batched_positions, self.discs.batched_positions = top, ground
        self.plumbs.points = np.stack([top, ground], axis=1)

    def _add_contacts(self) -> None:
        part = self.part
        robots, corners = part.robots, len(part.contacts.names)
        places = robots * corners
        if FORCES in part.extras:
            self.arrows = self._add_arrows("forces", COLORS[FORCES], places)
            self.groups[FORCES] = [self.arrows]
        if CONES in part.extras:
            self.cones = self._add_instances(
                "cones", _cone(), COLORS[CONES], places, opacity=0.35, cast_shadow=False,
                batched_scales=np.ones((places, 3)),
            )  # fmt: skip
            self.groups[CONES] = [self.cones]
        if SUPPORT in part.extras:
            self.polygon = self.page.add_mesh_simple(
                f"{self.name}/support", np.zeros((places, 3)), _fans(robots, corners), color=COLORS[SUPPORT],
                opacity=0.4, side="double", cast_shadow=False,
            )  # fmt: skip
            self.groups[SUPPORT] = [self.polygon]

    def _draw_contacts(self, frame: int, back: Array) -> None:
        part, contacts = self.part, self.part.contacts
        points = contacts.points[:, frame].reshape(-1, 3) + back
        if FORCES in part.extras:
            arrows = part.arrows[:, frame].reshape(-1, 3)
            pushing = arrows.any(axis=1)
            self.arrows.points = np.stack([points, points + arrows], axis=1)[pushing]
        if CONES in part.extras:
            mu = contacts.friction[:, frame].reshape(-1, 1)
            scales = 0.12 * self.size * np.where(mu > 0, np.concatenate([mu, mu, np.ones_like(mu)], axis=1), 0.0)
            self.cones.batched_positions = points
            self.cones.batched_wxyzs = _from_z(contacts.normals[:, frame].reshape(-1, 3))
            self.cones.batched_scales = contacts.active[:, frame].reshape(-1, 1) * scales
        if SUPPORT in part.extras:
            above = back + np.array([0, 0, 0.003 * self.size])
            self.polygon.vertices = contacts.support[:, frame].reshape(-1, 3) + above

    def _add_arrows(self, name: str, color: Any, count: int) -> Any:
        size = self.size
        return self.page.add_arrows(
            f"{self.name}/{name}", np.zeros((count, 2, 3)), color, shaft_radius=0.009 * size, head_radius=0.02 * size,
            head_length=0.045 * size,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------ frame axes and objects

    def _add_objects(self) -> None:
        part, objects, places = self.part, self.part.objects, len(self.part.terrain_places)
        axes = part.robots * part.axes.shape[2]
        if axes:
            self.axes = self._add_axes("axes", axes, AXIS_LENGTH * self.size)
            self.groups[AXES] = [self.axes]
        self.triads = [self._add_axes(f"triad_{k}", places, length) for k, (length, _) in enumerate(objects.triads)]
        self.markers = [
            self._add_instances(f"marker_{k}", triangulated(solid), 255 * solid.shape.color, places)
            for k, (solid, _) in enumerate(objects.markers)
        ]
        for handle, (solid, _) in zip(self.markers, objects.markers, strict=True):
            if solid.shape.color[3] < 1:
                handle.opacity = float(solid.shape.color[3])
        self.pointers = [
            self._add_arrows(f"arrow_{k}", tuple(round(255 * part) for part in color[:3]), places)
            for k, (_, _, color) in enumerate(objects.arrows)
        ]
        self.labels = [
            [
                self.page.add_label(f"{self.name}/label_{k}_{place}", text, anchor="bottom-center")
                for place in range(places)
            ]
            for k, (text, _) in enumerate(objects.labels)
        ]
        labels = [label for row in self.labels for label in row]
        self.groups.setdefault(OBJECTS, []).extend([*self.triads, *self.markers, *self.pointers, *labels])

    def _add_axes(self, name: str, count: int, length: float) -> Any:
        return self.page.add_batched_axes(
            f"{self.name}/{name}", np.tile([1.0, 0, 0, 0], (count, 1)), np.zeros((count, 3)), axes_length=length,
            axes_radius=AXIS_WIDTH * length,
        )  # fmt: skip

    def _draw_objects(self, frame: int, back: Array) -> None:
        part, objects, places = self.part, self.part.objects, self.part.terrain_places + back
        if AXES in self.groups:
            _place(self.axes, poses(part.axes[:, frame].reshape(-1, 4, 4)), back)
        for handle, (_, placements) in zip(
            [*self.triads, *self.markers], [*objects.triads, *objects.markers], strict=True
        ):
            _place(handle, np.tile(poses(placements[frame]), (len(places), 1)), places)
        for handle, (at, vector, _) in zip(self.pointers, objects.arrows, strict=True):
            tails = at[frame] + places
            handle.points = np.stack([tails, tails + vector[frame]], axis=1)
        for row, (_, at) in zip(self.labels, objects.labels, strict=True):
            for label, place in zip(row, places, strict=True):
                label.position = at[frame] + place


def _place(handle: Any, moved: Array, back: Array) -> None:
    handle.batched_positions, handle.batched_wxyzs = moved[:, :3] + back, moved[:, [6, 3, 4, 5]]


def _from_z(directions: Array) -> Array:
    """Quaternions w x y z (..., 4) of the shortest turns from z to unit vectors (..., 3)."""
    x, y, z = np.moveaxis(directions, -1, 0)
    turns = np.stack([1 + z, -y, x, np.zeros_like(z)], axis=-1)
    turns[z < -1 + 1e-9] = 0, 1, 0, 0  # half a turn, about any axis
    return np.asarray(turns / np.linalg.norm(turns, axis=-1, keepdims=True))


def _ball(radius: float) -> Mesh:
    from trimesh import creation

    ball = creation.icosphere(subdivisions=3, radius=radius)
    return Mesh(np.asarray(ball.vertices), np.asarray(ball.faces))


def _disc(radius: float, height: float) -> Mesh:
    from trimesh import creation

    disc = creation.cylinder(radius=radius, height=height, sections=32)
    return Mesh(np.asarray(disc.vertices), np.asarray(disc.faces))


def _cone(sides: int = 40) -> Mesh:
    """The mantle of a cone with its apex at the origin that opens along z: height 1, radius 1."""
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    rim = np.stack([np.cos(angles), np.sin(angles), np.ones(sides)], axis=1)
    next_one = np.arange(1, sides + 1) % sides
    faces = np.stack([np.zeros(sides, int), 1 + np.arange(sides), 1 + next_one], axis=1)
    return Mesh(np.concatenate([np.zeros((1, 3)), rim]), faces)


def _fans(robots: int, corners: int) -> Any:
    """Triangles of one polygon with so many corners for each robot."""
    fan = np.array([(0, k, k + 1) for k in range(1, corners - 1)])
    return (fan + corners * np.arange(robots)[:, None, None]).reshape(-1, 3)
