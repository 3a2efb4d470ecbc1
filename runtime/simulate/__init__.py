"""The simulator: the same machines in virtual time, with costs, link delays and a seed."""

from runtime.simulate.host import Simulation
from runtime.simulate.models import CostModel, LinkModel, TunerModel

__all__ = ["CostModel", "LinkModel", "Simulation", "TunerModel"]
