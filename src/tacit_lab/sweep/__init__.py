"""Many runs from one file: on local processes or a cluster, resumable, as tables."""

from tacit.errors import need

need("a sweep", "tables")

from tacit_lab.sweep.dataset import Sweep, load

__all__ = ["Sweep", "load"]
