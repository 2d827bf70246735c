"""Compiled functions on plain arrays, each the single source of one formula.

The compiled episode loops, the stepwise driver, the service and the device client all call these
same functions. Inside them the papers' letters are used: H stages, S states, A actions, and G for
the number of *stored* stages of a table: G = 1 when all stages share it, G = H when each has its
own.
"""

from tacit.kernels.compiler import kernel

__all__ = ["kernel"]
