"""Models of robots: joints, bodies and frames, built by hand or loaded from a file."""

from saltus.model.builder import ModelBuilder, random_model
from saltus.model.checks import ModelError
from saltus.model.frames import Frame, FrameKind
from saltus.model.joints import Joint, JointKind, Mimic
from saltus.model.loops import Actuator, Loop
from saltus.model.model import Model
from saltus.model.robots import RobotFrames, load_robot, robot_frames, robot_names
from saltus.model.shapes import Shape
from saltus.model.urdf import load_urdf

__all__ = [
    "Actuator",
    "Frame",
    "FrameKind",
    "Joint",
    "JointKind",
    "Loop",
    "Mimic",
    "Model",
    "ModelBuilder",
    "ModelError",
    "RobotFrames",
    "Shape",
    "load_robot",
    "load_urdf",
    "random_model",
    "robot_frames",
    "robot_names",
]
