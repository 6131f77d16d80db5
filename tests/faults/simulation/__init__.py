"""The engine and the storage under simulation: everything that happens to a run, from one seed.

- ``simulate(seed, place)``: a random graph with random outcomes, answers, schedule, clock and faults, run to
  its end, and what is wrong with it (``simulator.py``)
- ``virtual_loop.py``, ``faults.py``, ``worlds.py``: what takes the place of the world
- ``lives.py``: one session of a run, from its begin or resume to its end or death
- ``sights.py``, ``rules.py``, ``oracle.py``: what must be true, told without the engine's own decisions
"""

from __future__ import annotations

from tests.faults.simulation.simulator import ALL_FAULTS, Simulated, simulate

__all__ = ["ALL_FAULTS", "Simulated", "simulate"]
