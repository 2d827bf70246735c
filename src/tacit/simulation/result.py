"""What a simulation returns: curves, guarantee, and how they were made; and its folder on disk."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit._version import __version__
from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput, MissingExtra, need
from tacit.learned_policy import LearnedPolicy, load_policy, most_typical
from tacit.privacy.guarantee import Guarantee
from tacit.simulation import returns as outcomes
from tacit.simulation import words
from tacit.simulation.attendance import AttendanceSummary
from tacit.util.files import provenance, read_json, require_folder, write_json
from tacit.util.intervals import half_width, mean_interval
from tacit.validate import choice

if TYPE_CHECKING:
    import pandas as pd


FORMAT = 1
"""Version of a result's folder; unknown ones are refused."""

CURVES, MANIFEST, RESULT = "curves.parquet", "manifest.json", "result.json"

POLICY, POLICIES = "policy.json", "policies"
"""The chosen policy, and the folder with those of all runs."""

FACTS = (
    *("problem", "agent", "episodes", "requested_episodes", "interrupted", "seed", "seeds"),
    *("returning", "guarantee", "timing", "tests"),
)
"""What a manifest holds of a result besides its curves: keys of :meth:`Result.to_json`.

Only results of people who come back have ``returning``, and those of played worlds ``tests``.
"""

TIMING = "seconds", "episodes_per_second"
"""Of a manifest's ``timing``, what a result keeps; a sweep adds the time of a task."""


@dataclass(frozen=True, eq=False)
class Result:
    """Curves of several runs of one agent on one problem.

    Where nobody knows the truth of the problem, there is no optimum to compare with: results are of
    returns instead of regret, which is NaN throughout.

    Attributes:
        problem: description of the problem, with its exact optimum and baseline.
        agent: name, parameters and notes of the agent.
        guarantee: what was guaranteed to each simulated user.
        seed: root of the random streams.
        seeds: the runs.
        requested_episodes: the K that was asked for, and that the learner planned for.
        episodes: checkpoints, number of episodes done.
        regret: cumulative exact pseudo-regret against the optimum [seeds, checkpoints].
        reward: cumulative reward of the simulated users [seeds, checkpoints], in the units of what
            was played.
        interrupted: True if the runs were stopped early; the curves are then a valid prefix.
        seconds: wall-clock time.
        episodes_per_second: over all runs together.
        policies: of every run the one that was planned from all its users, after the last of them;
            empty where the runs were interrupted.
        returning: who took part and when, where people come back; else None.
        prior: which log learning began with, and its guarantee; None if it began with nothing.
        tests: where the truth is unknown, how the policies did on episodes that nobody learned
            from, and uniform actions and the best constant one on the same; ``runs`` has a row for
            every run, ``outside`` how many episodes returned what the declared range cuts. Else
            empty.
    """

    problem: Mapping[str, Any]
    agent: Mapping[str, Any]
    guarantee: Guarantee
    seed: int
    seeds: tuple[int, ...]
    requested_episodes: int
    episodes: IntArray
    regret: Array
    reward: Array
    interrupted: bool
    seconds: float
    episodes_per_second: float
    policies: tuple[LearnedPolicy, ...] = ()
    returning: AttendanceSummary | None = None
    prior: Mapping[str, Any] | None = None
    tests: Mapping[str, Any] = field(default_factory=dict)

    @property
    def played(self) -> bool:
        """Whether the truth is unknown, so that there are returns instead of regret."""
        return bool(self.tests)

    @cached_property
    def policy(self) -> LearnedPolicy:
        """The policy of the run that agrees most with all the runs.

        Which one is best in truth nobody can know who sees releases only, and nothing else may
        choose what is then called private. So the rule reads the policies alone: of all runs the
        one is taken that is nearest to their mean (:func:`tacit.learned_policy.most_typical`).
        """
        if not self.policies:
            raise InvalidInput(
                "this result holds no policy: it was interrupted (go on with --resume or resume=), "
                "or kept without policies, as sweeps and earlier versions do"
            )
        return self.policies[most_typical(self.policies)]

    # where the truth is unknown
    returns, note = property(outcomes.per_user), property(outcomes.note)
    tested, per_run = outcomes.tested, outcomes.per_run
    failed = property(outcomes.failed_runs)

    @property
    def completed(self) -> int:
        """Episodes that every run has done and recorded."""
        return int(self.episodes[-1]) if len(self.episodes) else 0

    def band(self) -> tuple[Array, Array, Array]:
        """Mean over runs and the ends of its pointwise 95% Student t interval.

        Of regret, cut off at 0, because it is never negative; of mean returns since the checkpoint
        before where there is no regret, cut off at what an episode can return. With a single run
        it is not defined, and both ends are NaN.
        """
        if self.played:
            return outcomes.band(self, outcomes.per_user(self))
        mean = self.regret.mean(axis=0)
        half = half_width(self.regret) if len(self.seeds) > 1 else np.full_like(mean, np.nan)
        return mean, np.maximum(mean - half, 0.0), mean + half

    @property
    def gap(self) -> float:
        """Regret per user of the baseline policy, exactly."""
        return float(self.problem["optimal_value"] - self.problem["baseline"]["value"])

    @property
    def reference(self) -> bool:
        """Whether the agent learns nothing: uniform, optimal, do-nothing."""
        return "epsilon" not in self.agent["parameters"] and self.guarantee.model != "none"

    @property
    def warning(self) -> str:
        """Whether the policies at the end were not better than the baseline; empty if they were.

        Where there is no regret, as :func:`tacit.simulation.returns.warning` says it. Else
        of all runs, or of single ones that a mean would hide; judged by the exact regret of the
        last tenth of the users, or what was recorded nearest to it, against that of the baseline
        policy (uniform actions; for control, doing nothing): by the mean over runs and, where there
        are several, its one-sided t test at 5%.
        """
        if self.played:
            return outcomes.warning(self)
        if self.reference or not self.completed:
            return ""
        name, last = self.problem["baseline"]["name"], self.completed
        idle = name == "do nothing"
        same = {"do nothing": "doing nothing", "uniform actions": name}
        baseline = same.get(name, f"the {name}")
        if self.gap <= 0.0:
            return f"There is nothing to learn here: {baseline} is already the best there is."
        begin, late = self.late_regret()
        mean = mean_interval(late, 0.9, least=0.0)  # each end is missed by 5%
        facts = (
            f"the last {last - begin:,} of {last:,} users lost {mean.value:.4g} each, and with "
            f"{baseline} they would have lost {self.gap:.4g}"
        )
        if idle and np.allclose(late, self.gap, rtol=1e-3, atol=0.0):
            return (
                "It ended by doing nothing, because releases did not show that anything else is "
                f"better: {facts}."
            )
        if mean.value >= self.gap:
            return f"Not better than {baseline}: {facts}."
        if len(late) > 1 and mean.high >= self.gap:
            return f"Not shown to be better than {baseline} ({len(late)} runs differ): {facts}."
        failed = [f"run {k} ({lost:.4g})" for k, lost in enumerate(late) if lost >= self.gap]
        if failed:
            return (
                f"{len(failed)} of {len(late)} runs ended no better than {baseline}, which loses "
                f"{self.gap:.4g}: {', '.join(failed)}."
            )
        return ""

    def lines(self) -> Iterator[str]:
        """All of it in words: what ``tacit run`` prints; lines without indent are headings."""
        return words.lines_of(self)

    def regret_per_episode(self, first: int, last: int) -> Array:
        """Mean regret per episode in (first, last] for every run; both must be checkpoints or 0."""
        return self.per_episode(self.regret, first, last)

    def per_episode(self, curve: Array, first: int, last: int) -> Array:
        """The same of any cumulative curve [seeds, checkpoints]."""
        grid = np.concatenate([[0], self.episodes])
        curve = np.concatenate([np.zeros((len(self.seeds), 1)), curve], axis=1)
        i, j = np.searchsorted(grid, [first, last])
        if j >= len(grid) or grid[i] != first or grid[j] != last or i >= j:
            raise ValueError(f"({first}, {last}] does not start and end at checkpoints")
        window: Array = (curve[:, j] - curve[:, i]) / (last - first)
        return window

    def late_regret(self) -> tuple[int, Array]:
        """Mean regret per episode of the last tenth, for every run; and where it begins.

        The last tenth, or what was recorded nearest to it.
        """
        last = self.completed
        before = self.episodes[self.episodes <= -(-last * 9 // 10)]
        begin = int(before[-1]) if len(before) and before[-1] < last else 0
        return begin, self.regret_per_episode(begin, last)

    def regret_per_person(self) -> Array:
        """Mean regret of a person over all their participations, for every run."""
        people = self.completed if self.returning is None else self.returning.people
        last = self.regret[:, -1] if self.completed else np.zeros(len(self.seeds))
        return np.asarray(last / max(people, 1))

    def frame(self) -> pd.DataFrame:
        """Tidy frame with columns seed, episode, regret, reward; and day where people come back.

        In place of regret it has returns (since the row before) where there is none.
        """
        need("a table of curves", "tables")
        import pandas as pd

        points, runs, own = len(self.episodes), len(self.seeds), {"regret": self.regret.ravel()}
        days = {} if self.returning is None else {"day": np.tile(self.returning.days, runs)}
        return pd.DataFrame(
            {
                "seed": np.repeat(np.array(self.seeds, dtype=np.int64), points),
                "episode": np.tile(self.episodes, runs),
                **({"returns": outcomes.per_user(self).ravel()} if self.played else own),
                "reward": self.reward.ravel(),
                **days,
            }
        )

    def to_json(self) -> dict[str, Any]:
        """The object ``tacit run --json`` prints; of regret, or of returns where there is none."""
        mean, low, high = self.band()
        final = self.regret[:, -1] if self.completed else np.zeros(0)
        several = len(final) > 1
        regret = {
            "mean": float(final.mean()) if self.completed else None,
            "std": float(final.std(ddof=1)) if several else None,
            "ci95": [float(low[-1]), float(high[-1])] if several else [None, None],
            "per_seed": final.tolist(),
        }
        return {
            "tacit": __version__,
            "problem": dict(self.problem),
            "agent": dict(self.agent),
            "episodes": self.completed,
            "requested_episodes": self.requested_episodes,
            "interrupted": self.interrupted,
            "seed": self.seed,
            "seeds": list(self.seeds),
            **({} if self.played else {"regret": regret}),
            "curve": {
                "episode": self.episodes.tolist(),
                "mean": mean.tolist(),
                "lo": _numbers(low),
                "hi": _numbers(high),
            },
            **({} if self.returning is None else {"returning": self._returned(self.returning)}),
            **({} if self.prior is None else {"prior": dict(self.prior)}),
            "warning": self.warning,
            "guarantee": self.guarantee.to_json(),
            "timing": {key: getattr(self, key) for key in TIMING},
            **(outcomes.facts(self) if self.played else {}),
        }

    def _returned(self, back: AttendanceSummary) -> dict[str, Any]:
        """About people who came back, as plain values."""
        each = {"regret_per_person": self.regret_per_person().tolist()}
        return {**vars(back), "days": list(back.days), **each}

    def plot(
        self, path: str | Path, *, log: bool = True, baseline: bool = True, by: str = "episode"
    ) -> Path:
        """Draw regret, or returns where there is none, into a file (``tacit.simulation.plot``)."""
        from tacit.simulation.plot import plot_regret, plot_returns

        if self.played:
            choice(by, "by", ("episode",))  # nobody comes back here
            return plot_returns(self, path, log=log, baseline=baseline)
        return plot_regret([self], path, log=log, baseline=baseline, by=by)

    def _repr_html_(self) -> str:
        """The result in a notebook: what ran, what it lost, the curve and the guarantee."""
        who = "users" if self.returning is None else "participations"
        rows = {
            "problem": f"{self.problem['name']}, horizon {self.problem['horizon']}",
            "agent": str(self.agent["name"]),
            who: f"{self.completed:,} of {self.requested_episodes:,}, runs: {len(self.seeds)}",
        }
        picture = ""
        if self.completed:
            rows |= self._outcome()
            with suppress(MissingExtra), TemporaryDirectory() as folder:
                drawn = base64.b64encode(self.plot(Path(folder, "curve.png")).read_bytes()).decode()
                picture = f'<img alt="curve" width="700" src="data:image/png;base64,{drawn}">'
        cells = "".join(f"<tr><th>{k}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
        return f"<table>{cells}</table>{picture}{self.guarantee._repr_html_()}"

    def _outcome(self) -> dict[str, str]:
        """How it went, as rows of the notebook's table."""
        if self.played:
            rows = {"return": outcomes.earned(self), "tested": outcomes.tested(self)}
            rows |= {"runs": "; ".join(outcomes.per_run(self)), "note": outcomes.note(self)}
            return rows | ({"warning": self.warning} if self.warning else {})
        mean, low, high = (curve[-1] for curve in self.band())
        rows = {"regret": f"{mean:.5g} ({words.over_runs(len(self.seeds), low, high)})"}
        if self.returning is not None:
            rows["people"] = f"{self.returning.people:,} in {self.returning.days[-1]:.4g} days"
            rows["regret per person"] = f"{self.regret_per_person().mean():.4g}"
        return rows

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write curves.parquet, result.json, the policies and manifest.json into a folder.

        The policy of run n is in policies/n.json, the chosen one is policy.json besides. Each file
        appears complete or not at all, the manifest last.
        """
        target = Path(folder)
        prepare(target, overwrite=overwrite)
        unfinished = target / (CURVES + ".part")
        self.frame().to_parquet(unfinished, index=False)
        unfinished.replace(target / CURVES)
        report = self.to_json()
        write_json(target / RESULT, report)
        if self.policies:
            require_folder(target / POLICIES)
            self.policy.save(target / POLICY)
        for run, policy in zip(self.seeds, self.policies, strict=False):
            policy.save(target / POLICIES / f"{run}.json")
        manifest = {
            "format": FORMAT,
            "tacit": __version__,
            **{key: report[key] for key in FACTS if key in report},
            "guarantee_digest": self.guarantee.digest(),
            **provenance(),
        }
        write_json(target / MANIFEST, manifest)
        return target

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read a folder written by :meth:`save`."""
        need("reading a result", "tables")
        import pandas as pd

        source = Path(folder)
        missing = f"{source} holds no result: it has no {MANIFEST}"
        manifest = read_json(source / MANIFEST, missing)
        if manifest.get("format") != FORMAT:
            raise InvalidInput(
                f"{source} has format {manifest.get('format')!r}, but this version reads {FORMAT}"
            )
        result = cls.from_json(manifest, pd.read_parquet(source / CURVES))
        files = [source / POLICIES / f"{run}.json" for run in result.seeds]
        if result.interrupted or not all(file.exists() for file in files):
            return result
        return replace(result, policies=tuple(map(load_policy, files)))

    @classmethod
    def from_json(
        cls, facts: Mapping[str, Any], curves: Mapping[str, Any] | pd.DataFrame
    ) -> Result:
        """A result from plain values as in a manifest, and its curves.

        Args:
            facts: what :data:`FACTS` lists.
            curves: columns episode, regret (if it is known) and reward, run after run.
        """
        seeds = tuple(int(seed) for seed in facts["seeds"])
        reward = np.asarray(curves["reward"], dtype=np.float64).reshape(len(seeds), -1)
        regret = np.full(reward.shape, np.nan)
        if "regret" in curves:
            regret = np.asarray(curves["regret"], dtype=np.float64).reshape(reward.shape)
        same = ("problem", "agent", "seed", "requested_episodes", "interrupted")
        return cls(
            **{key: facts[key] for key in same},
            **{key: facts["timing"][key] for key in TIMING},
            guarantee=Guarantee.from_json(facts["guarantee"]),
            seeds=seeds,
            episodes=np.asarray(curves["episode"], dtype=np.int64)[: regret.shape[1]],
            regret=regret,
            reward=reward,
            returning=AttendanceSummary.from_json(facts.get("returning")),
            tests=facts.get("tests", {}),
        )


def prepare(folder: Path, *, overwrite: bool) -> None:
    """Make a folder ready for a result; refuse one that cannot be written or already holds one."""
    if (folder / MANIFEST).exists() and not overwrite:
        raise InvalidInput(
            f"{folder} already holds a result; choose another folder, or overwrite it on purpose "
            "(--overwrite, overwrite=True)"
        )
    need("keeping a result in a folder", "plots", "tables")
    require_folder(folder)


def _numbers(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
