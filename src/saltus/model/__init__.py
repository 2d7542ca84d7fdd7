"""Models of robots: joints, bodies and frames, built by hand or loaded from a file."""

from saltus.model.builder import ModelBuilder, random_model
from saltus.model.checks import ModelError
from saltus.model.frames import Frame, FrameKind
from saltus.model.joints import Joint, JointKind, Mimic
from saltus.model.model import Model
from saltus.model.urdf import load_urdf

__all__ = [
    "Frame",
    "FrameKind",
    "Joint",
    "JointKind",
    "Mimic",
    "Model",
    "ModelBuilder",
    "ModelError",
    "load_urdf",
    "random_model",
]
