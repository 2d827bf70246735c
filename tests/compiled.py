"""How kernels are compiled for tests: sooner, and once for all of them.

Half the time of a fresh run is spent compiling. Few optimizations shorten it; and the recorded
digests need a generic processor (``golden/machine.py``), so all tests and the processes they start
compile for one. ``NUMBA_OPT=3 pytest`` compiles as users do.
"""

COMPILED = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_OPT": "1",
    "NUMBA_DISABLE_INTEL_SVML": "1",
}
"""Numba reads these when it is loaded, and keeps apart what it compiles for another processor."""
