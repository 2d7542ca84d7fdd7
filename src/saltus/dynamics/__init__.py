"""Kinematics and dynamics of trees of rigid bodies."""

from saltus.dynamics import coupled_rnea  # what takes the place of others for robots with mimic joints
