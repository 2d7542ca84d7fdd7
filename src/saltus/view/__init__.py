"""Robots to look at: a 3D viewer in the browser, replay files, plots.

viser, matplotlib and trimesh are imported when they are used.
"""

from saltus.view.browser import Viewer, show
from saltus.view.contacts import Contacts, contacts_of
from saltus.view.ocp_plots import plot_controls, plot_costs, plot_forces, plot_gaps
from saltus.view.plots import plot_center_of_mass, plot_contact_forces, plot_energy, plot_trajectory
from saltus.view.replay import save_replay
from saltus.view.scene import Scene, describe

__all__ = [
    "Contacts",
    "Scene",
    "Viewer",
    "contacts_of",
    "describe",
    "plot_center_of_mass",
    "plot_contact_forces",
    "plot_controls",
    "plot_costs",
    "plot_energy",
    "plot_forces",
    "plot_gaps",
    "plot_trajectory",
    "save_replay",
    "show",
]
