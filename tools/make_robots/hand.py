"""A hand of five fingers and 25 joints, five in each, of the size of a large man's."""

from __future__ import annotations

from itertools import combinations

from tools.make_robots.parts import Joint, Robot, Solid, Triple, Y, Z, ball, bar, mirrored

# Across the palm and along it where the finger's metacarpal and its knuckle are; the lengths of the three phalanges.
FINGERS = {
    "index": (0.030, -0.092, (0.044, 0.026, 0.020)),
    "middle": (0.010, -0.096, (0.048, 0.030, 0.021)),
    "ring": (-0.010, -0.093, (0.044, 0.028, 0.021)),
    "little": (-0.029, -0.087, (0.034, 0.021, 0.018)),
}
RADIUS = 0.0085


def add_hand(robot: Robot, name: str, side: int, palm: str) -> None:
    """Fingers hang down from the palm's lower edge, the thumb is in front; they flex towards the body. A hand does not touch
    itself."""
    for finger, (across, knuckle, lengths) in FINGERS.items():
        _add_finger(robot, f"{name}_{finger}", side, palm, (across, 0.0, knuckle), lengths)
    _add_thumb(robot, f"{name}_thumb", side, palm)
    touching = [link for link, parts in robot.links.items() if link.startswith(f"{name}_") and parts.colliders]
    own = [palm, *(link for link in touching if link.split("_")[1] in (*FINGERS, "thumb"))]
    robot.apart += combinations(own, 2)


def _flexion(name: str, side: int, lower: float, upper: float, effort: float) -> Joint:
    """Positive angles close the left hand; the right one is its mirror image, about the other axis."""
    return Joint(name, (-float(side), 0.0, 0.0), lower, upper, effort, 8.0)


def _bone(length: float, color: str = "cream") -> list[Solid]:
    return [bar((0.0, 0.0, 0.0), (0.0, 0.0, -length), RADIUS, color, touches=True)]


def _add_finger(robot: Robot, name: str, side: int, palm: str, at: Triple, lengths: Triple) -> None:
    near, middle, far = lengths
    root = (at[0], 0.0, -0.040)  # inside the palm
    arch = _flexion(f"{name}_arch", side, 0.0, 0.25, 4.0)
    spread = Joint(f"{name}_spread", Y, -0.3, 0.3, 2.0, 8.0)
    bones = [bar((0.0, 0.0, 0.0), (0.0, 0.0, at[2] - root[2]), RADIUS, "graphite")]
    robot.add(f"{name}_metacarpal", palm, root, arch, 0.03, bones)
    robot.add(f"{name}_knuckle", f"{name}_metacarpal", (0.0, 0.0, at[2] - root[2]), spread, 0.01, [ball(RADIUS * 1.1)])
    robot.add(
        f"{name}_near",
        f"{name}_knuckle",
        (0.0, 0.0, 0.0),
        _flexion(f"{name}_mcp", side, -0.3, 1.6, 3.0),
        0.03,
        _bone(near),
    )
    robot.add(
        f"{name}_middle",
        f"{name}_near",
        (0.0, 0.0, -near),
        _flexion(f"{name}_pip", side, 0.0, 1.8, 2.0),
        0.02,
        _bone(middle),
    )
    _add_tip(robot, name, f"{name}_middle", middle, far, _flexion(f"{name}_dip", side, 0.0, 1.3, 1.0))


def _add_thumb(robot: Robot, name: str, side: int, palm: str) -> None:
    lower, upper = sorted((-0.3 * side, 1.2 * side))
    turn = Joint(f"{name}_turn", Z, lower, upper, 4.0, 8.0)
    spread = Joint(f"{name}_spread", Y, -0.4, 0.8, 4.0, 8.0)
    flexion = _flexion(f"{name}_flexion", side, -0.3, 1.0, 4.0)
    mcp, tip = _flexion(f"{name}_mcp", side, 0.0, 1.0, 3.0), _flexion(f"{name}_dip", side, -0.2, 1.3, 2.0)
    robot.add(
        f"{name}_root", palm, mirrored((0.038, -0.008, -0.030), side), turn, 0.02, [ball(0.014)], rpy=(0, -0.7, 0)
    )
    robot.add(f"{name}_saddle", f"{name}_root", (0.0, 0.0, 0.0), spread, 0.01, [ball(0.012, color="teal")])
    robot.add(f"{name}_metacarpal", f"{name}_saddle", (0.0, 0.0, 0.0), flexion, 0.04, _bone(0.042))
    robot.add(f"{name}_near", f"{name}_metacarpal", (0.0, 0.0, -0.042), mcp, 0.03, _bone(0.032))
    _add_tip(robot, name, f"{name}_near", 0.032, 0.024, tip)


def _add_tip(robot: Robot, name: str, parent: str, before: float, length: float, joint: Joint) -> None:
    tip = [bar((0.0, 0.0, 0.0), (0.0, 0.0, -length), RADIUS * 0.9, "teal", touches=True)]
    robot.add(f"{name}_far", parent, (0.0, 0.0, -before), joint, 0.012, tip)
    robot.add(f"{name}_tip", f"{name}_far", (0.0, 0.0, -length))
