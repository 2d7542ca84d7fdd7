"""A replay: a robot in motion as one HTML file, which any browser opens from disk, without a server and a network.

The page holds three.js, and the numbers of the scene: positions and quaternions of the bodies that carry shapes, and what
belongs to the contacts, as float32 in base64. Five seconds of a robot of 80 bodies at 50 Hz are 0.8 MB, the library 0.6 MB.
Poses of many robots take 16 bits a number: ten seconds of 256 quadrupeds are 34 MB.
"""

from __future__ import annotations

import base64
import html
import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saltus.model.checks import Array
from saltus.model.model import Model
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.simulation import Motion, Trajectory
from saltus.view.browser import scene_of
from saltus.view.drawn import AXIS_LENGTH, AXIS_WIDTH, SEE_THROUGH
from saltus.view.scene import EXTRAS, FIELD_OF_VIEW, VIEWS, Scene, poses
from saltus.view.solids import Solid
from saltus.view.terrain import EDGE_SHADE

ENDINGS = (".html", ".htm")
SCRIPTS = ("stage.js", "crowd.js", "robots.js", "extras.js", "player.js")  # one after the other
MOST_EXACT = 1_000_000
"""How many poses a file may have as float32; more are 16-bit numbers: of positions 1/65535 of how far robots go."""


def save_replay(
    path: str | Path,
    model: Model | Motion | ShootingProblem | Scene,
    q: ArrayLike | Trajectory | OCPResult | None = None,
    dt: float = 0.02,
    **extras: Any,
) -> Path:
    """Writes the motion `q` (nq,), (T, nq) or (B, T, nq), frames `dt` apart [s], as one HTML file; returns its path.

    model: or, without q, what `Simulator.rollout` returns: contacts and terrain are drawn as well; or a `ShootingProblem`,
        with its `OCPResult` in the place of q, likewise; or a scene, of `describe` or `side_by_side`.
    q: a `Trajectory` of `rollout` as well. Of two axes the first one is time; `axis="robots"` says that it counts robots.
    extras: terrain, contacts, forces, axes, objects, title and more, as `describe` takes them.

    In the page: drag to turn, wheel to zoom, right button to move; space plays and stops, the arrow keys go frame by frame
    (with shift, ten).

    >>> import tempfile, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=5)
    >>> q = sl.interpolate(robot, robot.neutral(), sl.random_configuration(robot, seed=1), np.linspace(0, 1, 50))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = save_replay(f"{folder}/replay.html", robot, q)
    ...     file.stat().st_size < 1_000_000
    True
    """
    file = Path(path)
    if file.suffix.lower() not in ENDINGS:
        raise ValueError(
            f"{file}: a replay is an HTML file, expected a name that ends in .html; `save_picture` and "
            "`save_video` write others"
        )
    text = page(scene_of(model, q, dt, **extras))
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{file}: cannot be written: {error.strerror}") from None
    return file


def page(scene: Scene) -> str:
    """The replay of a scene, as HTML."""
    count = sum(part.robots for part in scene.parts)
    robots = f"{count} robots · " if count > 1 else ""
    length = f"{(scene.frames - 1) * scene.dt:.2f} s · {scene.frames} frames" if scene.frames > 1 else "one pose"
    parts = {
        "title": html.escape(scene.title),
        "subtitle": robots + length,
        "style": _asset("replay.css"),
        # Inside a script element "</" could end it; JSON may write the slash with a backslash.
        "data": json.dumps(_data(scene), separators=(",", ":")).replace("</", "<\\/"),
        "three": _asset("three.min.js"),
        "script": "".join(map(_asset, SCRIPTS)),
    }
    head, *pieces = _asset("replay.html").split("{{")
    text = [head]
    for piece in pieces:
        name, after = piece.split("}}", 1)
        text += [parts[name], after]
    return "".join(text)


def _data(scene: Scene) -> dict[str, Any]:
    """What the page's scripts read; arrays as base64."""
    meshes: dict[tuple[str, str], int] = {}  # each once, however often it is drawn
    parts = [_part(part, meshes) for part in scene.parts]
    return {
        "frames": scene.frames,
        "dt": scene.dt,
        "size": scene.size,
        "floor": scene.floor,
        "low": scene.low.tolist(),
        "high": scene.high.tolist(),
        "views": {name: scene.eye(name).tolist() for name in VIEWS},
        "field_of_view": np.degrees(FIELD_OF_VIEW),
        "follow": scene.follow,
        "path": _packed(scene.path),
        "see_through": SEE_THROUGH,
        "axis_length": AXIS_LENGTH * scene.size,
        "axis_width": AXIS_WIDTH,
        "extras": [name for name in EXTRAS if any(name in part.extras for part in scene.parts)],
        "shown": scene.shown,
        "meshes": [{"vertices": vertices, "faces": faces} for vertices, faces in meshes],
        "parts": parts,
    }


def _part(part: Scene, meshes: dict[tuple[str, str], int]) -> dict[str, Any]:
    contacts, objects, places = part.contacts, part.objects, part.terrain_places
    carriers = sorted({solid.shape.joint for solid in part.solids})  # the joints whose poses are needed
    return {
        "robots": part.robots,
        "bodies": len(carriers),
        "opacity": part.opacity.tolist(),
        "solids": [_solid(solid, carriers.index(solid.shape.joint), meshes) for solid in part.solids],
        "poses": _packed_poses(poses(part.placements[:, :, carriers]), places),
        "center": _packed(part.center),
        "axes": _packed(poses(part.axes)),
        "places": places.tolist(),
        "surfaces": [
            {
                "vertices": _packed(surface.mesh.vertices),
                "faces": _packed(surface.mesh.faces, np.uint32),
                "edges": _packed(surface.edges),
                "color": surface.color.tolist(),
                "edge_color": (EDGE_SHADE * surface.color).tolist(),
            }
            for surface in part.surfaces
        ],
        "contacts": {
            "points": _packed(contacts.points),
            "arrows": _packed(part.arrows),
            "normals": _packed(contacts.normals),
            "support": _packed(contacts.support),
            "active": _packed(contacts.active, np.uint8),
            "friction": _packed(contacts.friction),
            "count": len(contacts.names),
        },
        "markers": [{**_solid(solid, 0, meshes), "poses": _packed(poses(at))} for solid, at in objects.markers],
        "triads": [{"length": length, "poses": _packed(poses(at))} for length, at in objects.triads],
        "paths": [
            {"points": np.asarray(path.points).tolist(), "color": path.color, "width": path.width}
            for path in objects.paths
        ],
        "pointers": [
            {"at": _packed(at), "vectors": _packed(vector), "color": color.tolist()}
            for at, vector, color in objects.arrows
        ],
        "labels": [{"text": text, "at": _packed(at)} for text, at in objects.labels],
    }


def _packed_poses(array: Array, places: Array) -> dict[str, Any]:
    """Positions and quaternions (B, T, bodies, 7)."""
    if array.size <= 7 * MOST_EXACT:
        return {"numbers": _packed(array)}
    local = array.copy()  # about the robots' places, which is all that is far away
    local[..., :3] -= places[:, None, None]
    low, high = local[..., :3].min(axis=(0, 1, 2)), local[..., :3].max(axis=(0, 1, 2))
    scale = np.maximum(high - low, 1e-6) / 65535.0
    local[..., :3] = (local[..., :3] - low) / scale - 32768.0
    local[..., 3:] *= 32767.0
    return {"low": low.tolist(), "scale": scale.tolist(), "shorts": _packed(np.rint(local), np.int16)}


def _solid(solid: Solid, body: int, meshes: dict[tuple[str, str], int]) -> dict[str, Any]:
    shape = solid.shape
    described: dict[str, Any] = {
        "kind": shape.kind,
        "size": shape.size.tolist(),
        "pose": poses(shape.placement).tolist(),
        "color": shape.color.tolist(),
        "body": body,
    }
    if solid.mesh is not None:
        packed = _packed(solid.mesh.vertices), _packed(solid.mesh.faces, np.uint32)
        described["mesh"] = meshes.setdefault(packed, len(meshes))
    return described


def _packed(array: NDArray[Any], kind: type = np.float32) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _asset(name: str) -> str:
    return resources.files("saltus.view").joinpath("assets", name).read_text(encoding="utf-8")
