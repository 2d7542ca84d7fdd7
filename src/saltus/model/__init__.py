"""Models of robots: joints, bodies and frames, built by hand or loaded from a file."""

from saltus.model.builder import ModelBuilder
from saltus.model.checks import ModelError
from saltus.model.frames import Frame, FrameKind
from saltus.model.joined import join_models
from saltus.model.joints import Joint, JointKind, Mimic
from saltus.model.loops import Actuator, Loop
from saltus.model.mjcf import load_mjcf
from saltus.model.model import Model
from saltus.model.random_trees import random_model
from saltus.model.reduced import reduce_model
from saltus.model.robots import RobotFrames, load_robot, robot_frames, robot_names
from saltus.model.robots.srdf import load_srdf
from saltus.model.sdf import load_sdf
from saltus.model.shapes import Shape
from saltus.model.urdf import load_urdf
from saltus.model.urdf_write import save_urdf

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
    "join_models",
    "load_mjcf",
    "load_robot",
    "load_sdf",
    "load_srdf",
    "load_urdf",
    "random_model",
    "reduce_model",
    "robot_frames",
    "robot_names",
    "save_urdf",
]
