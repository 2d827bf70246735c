"""Numbers, lives and logs as hostile as bits allow: the one place where they are made."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.kernels.raw.counts import clip_reward
from tacit.publication import Publication
from tacit.trajectory import Log, Trajectory, VectorTrajectory

Column = npt.NDArray[Any]
REALS: tuple[Any, ...] = (np.float16, np.float32, np.float64)
WHOLES: tuple[Any, ...] = (np.int8, np.int16, np.int32, np.int64)
WHOLES += (np.uint8, np.uint16, np.uint32, np.uint64)
KINDS: tuple[Any, ...] = (*REALS, *WHOLES, np.bool_)


def special(kind: Any) -> Column:
    """Every special value of a type.

    Of reals by their bits: both zeros, the least and the largest subnormal and normal numbers,
    what lies beside 1/2, 1 and 2, both infinities, and numbers that are none, quiet and signalling,
    of other payloads and of both signs.
    """
    kind = np.dtype(kind)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        near = [x for x in (-2, -1, 0, 1, 2, 3, 4, 7) if x >= least]
        return np.array([least, least + 1, *near, most - 1, most], dtype=kind)
    form = np.finfo(kind)
    one, last = 2 ** (form.bits - form.nmant - 2) - 1, 2 ** (form.bits - form.nmant - 1) - 1
    quiet, full = 2 ** (form.nmant - 1), 2**form.nmant - 1
    bits = [
        sign << form.bits - 1 | exponent << form.nmant | rest
        for sign in (0, 1)
        for exponent in (0, 1, one - 1, one, one + 1, last - 1, last)
        for rest in (0, 1, quiet - 1, quiet, quiet + 1, full)
    ]
    return np.array(bits, dtype=f"u{kind.itemsize}").view(kind)


def column(rng: np.random.Generator, rows: int, kind: Any, plain: Sequence[float]) -> Column:
    """So many numbers of a type: special, plain, or one of them throughout."""
    kind = np.dtype(kind)
    usual = np.array(plain).astype(kind)
    some = [special(kind), usual, np.concatenate([special(kind), usual])][rng.integers(3)]
    if rng.random() < 0.4:
        some = some[[rng.integers(len(some))]]
    return rng.choice(some, rows)


def life(rng: np.random.Generator, horizon: int, states: int, actions: int) -> Trajectory:
    """What somebody sends in place of a trajectory through a table."""
    steps = int(rng.choice([0, 1, horizon, horizon, horizon, horizon + 2]))
    each = {"states": (steps + 1, range(states)), "actions": (steps, range(actions))}
    sent = {
        name: column(rng, rows, rng.choice([np.int64, np.int64, np.int8, np.uint64]), [*some])
        for name, (rows, some) in each.items()
    }
    rewards = column(rng, steps, rng.choice(KINDS), [0.0, 0.5, 1.0])
    with np.errstate(all="ignore"):  # a signalling NaN says so when it becomes a number of 64 bits
        return Trajectory(*sent.values(), rewards)


def path(rng: np.random.Generator, horizon: int, states: int, inputs: int) -> VectorTrajectory:
    """The same of a linear system."""
    parts = [
        np.stack([column(rng, width, np.float64, [0.0, 0.1, 1.0, -1.0]) for _ in range(rows)])
        for rows, width in ((horizon + 1, states), (horizon, inputs))
    ]
    if rng.random() < 0.5:  # one number that is none spoils all
        parts = [np.nan_to_num(part, nan=1.0, posinf=1e308, neginf=-1e308) for part in parts]
    scale = rng.choice([1.0, 1e-300, 1e-9, 1e9, 1e150, 1e200])
    with np.errstate(all="ignore"):
        return VectorTrajectory(parts[0] * scale, parts[1] * scale, np.zeros(horizon))


def earned(rng: np.random.Generator, horizon: int) -> VectorTrajectory:
    """The same of who searches: rewards alone are read."""
    none, rewards = np.zeros((0, 1)), column(rng, horizon, rng.choice(KINDS), [0.0, 1.0, 9.0, -9.0])
    with np.errstate(all="ignore"):
        return VectorTrajectory(none, none, rewards)


def altered(rng: np.random.Generator, trip: Trajectory) -> Trajectory:
    """A life with special numbers here and there."""
    parts = []
    for part in (trip.states, trip.actions, trip.rewards):
        odd = rng.choice(special(part.dtype), part.shape)
        parts.append(np.where(rng.random(part.shape) < 0.2, odd, part))
    return type(trip)(*parts)


def rows_of_one(
    rng: np.random.Generator, sizes: tuple[int, int, int], whole: Any, real: Any
) -> Log:
    """Rows of one person as a log in memory may hold them, in columns of these types.

    Every set of types is compiled anew, so a test chooses a few.
    """
    horizon, states, actions = sizes
    rows = int(rng.choice([0, 1, horizon, horizon, horizon, 3 * horizon]))
    step = np.arange(rows) % horizon
    sent = {
        "opens": (step == 0).astype(whole),
        "step": step.astype(whole),
        **{
            name: column(rng, rows, whole, range(most))
            for name, most in (("state", states), ("action", actions), ("after", states))
        },
    }
    if rng.random() < 0.4:
        sent |= {name: column(rng, rows, whole, range(2)) for name in ("opens", "step")}
    if rng.random() < 0.6:  # rows that count, whatever their numbers say
        sent |= {name: np.clip(sent[name], 0, actions - 1) for name in ("state", "action")}
    sent |= {name: column(rng, rows, real, [0.0, 0.5, 1.0, 1e-5]) for name in ("reward", "chance")}
    return Log(begin=np.array([0, rows]), **sent)


def publications(
    rng: np.random.Generator, entry: Publication, worst: Sequence[Any], count: int
) -> list[Publication]:
    """An entry, the same with the contexts that audits use, and with numbers nobody would publish.

    Arrays keep their shapes and types: others are refused, and they are public.
    """
    found = [entry, *(dataclasses.replace(entry, context={**entry.context, **w}) for w in worst)]
    for _ in range(count if entry.context else 0):
        odd = {}
        for name, array in entry.context.items():
            drawn = rng.choice(special(array.dtype), array.shape)
            odd[name] = np.where(rng.random(array.shape) < rng.choice([0.2, 1.0]), drawn, array)
        found.append(dataclasses.replace(entry, context=odd))
    return found


@contextmanager
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels as plain Python, as a device without numba runs them."""
    compiled = type(clip_reward)
    with monkeypatch.context() as patch, np.errstate(all="ignore"):
        for name, module in list(sys.modules.items()):
            if name.startswith("tacit."):
                for entry, value in list(vars(module).items()):
                    if isinstance(value, compiled):
                        patch.setattr(module, entry, getattr(value, "py_func", value))
        yield
