"""A replay: a robot in motion as one HTML file, which any browser opens from disk, without a server and a network.

The page holds three.js, and the numbers of the scene: positions and quaternions of the bodies that carry shapes, and what
belongs to the contacts, as float32 in base64. Five seconds of a robot of 80 bodies at 50 Hz are 0.8 MB, the library 0.6 MB.
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

from saltus.model.model import Model
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.simulation import Motion
from saltus.view.scene import FIELD_OF_VIEW, Scene, describe, poses
from saltus.view.solids import Solid
from saltus.view.terrain import EDGE_SHADE


def save_replay(
    path: str | Path,
    model: Model | Motion | ShootingProblem,
    q: ArrayLike | OCPResult | None = None,
    dt: float = 0.02,
    **extras: Any,
) -> Path:
    """Writes the motion `q` (nq,), (T, nq) or (B, T, nq), frames `dt` apart [s], as one HTML file; returns its path.

    model: or, without q, what `Simulator.rollout` returns: contacts and terrain are drawn as well; or a `ShootingProblem`,
        with its `OCPResult` in the place of q: contacts and forces are drawn as well.
    extras: terrain, contacts, forces, active, normals, friction, layout, title, as `describe` takes them.

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
    text = page(describe(model, q, dt, **extras))
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{file}: cannot be written: {error.strerror}") from None
    return file


def page(scene: Scene) -> str:
    """The replay of a scene, as HTML."""
    robots = f"{scene.robots} trajectories · " if scene.robots > 1 else ""
    length = f"{(scene.frames - 1) * scene.dt:.2f} s · {scene.frames} frames" if scene.frames > 1 else "one pose"
    parts = {
        "title": html.escape(scene.title),
        "subtitle": robots + length,
        "style": _asset("replay.css"),
        # Inside a script element "</" could end it; JSON may write the slash with a backslash.
        "data": json.dumps(_data(scene), separators=(",", ":")).replace("</", "<\\/"),
        "three": _asset("three.min.js"),
        "script": _asset("replay.js"),
    }
    head, *pieces = _asset("replay.html").split("{{")
    text = [head]
    for piece in pieces:
        name, after = piece.split("}}", 1)
        text += [parts[name], after]
    return "".join(text)


def _data(scene: Scene) -> dict[str, Any]:
    """What the page's script reads; arrays as base64."""
    contacts = scene.contacts
    carriers = sorted({solid.shape.joint for solid in scene.solids})  # the joints whose poses are needed
    meshes: dict[tuple[str, str], int] = {}  # each once, however often it is drawn
    solids = [_solid(solid, carriers.index(solid.shape.joint), meshes) for solid in scene.solids]
    return {
        "robots": scene.robots,
        "frames": scene.frames,
        "dt": scene.dt,
        "size": scene.size,
        "floor": scene.floor,
        "low": scene.low.tolist(),
        "high": scene.high.tolist(),
        "eye": scene.eye.tolist(),
        "field_of_view": np.degrees(FIELD_OF_VIEW),
        "follow": scene.follow,
        "opacity": scene.opacity.tolist(),
        "solids": solids,
        "meshes": [{"vertices": vertices, "faces": faces} for vertices, faces in meshes],
        "poses": _packed(poses(scene.placements[:, :, carriers])),
        "center": _packed(scene.center),
        "path": _packed(scene.path),
        "extras": scene.extras,
        "shown": scene.shown,
        "terrain": {
            "surfaces": [
                {
                    "vertices": _packed(surface.mesh.vertices),
                    "faces": _packed(surface.mesh.faces, np.uint32),
                    "edges": _packed(surface.edges),
                    "color": surface.color.tolist(),
                    "edge_color": (EDGE_SHADE * surface.color).tolist(),
                }
                for surface in scene.surfaces
            ],
            "places": scene.terrain_places.tolist(),
        },
        "contacts": {
            "points": _packed(contacts.points),
            "arrows": _packed(scene.arrows),
            "normals": _packed(contacts.normals),
            "support": _packed(contacts.support),
            "active": _packed(contacts.active, np.uint8),
            "friction": _packed(contacts.friction),
            "count": len(contacts.names),
        },
    }


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
