import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

import tacit
from tacit.errors import InvalidInput


@pytest.fixture(scope="module")
def result() -> tacit.Result:
    return tacit.simulate(tacit.problem("random-mdp", seed=1), tacit.agent("psrl"), 400, runs=5)


def test_json_has_the_contract_keys_and_is_plain(result) -> None:
    report = result.to_json()
    contract = ["tacit", "problem", "agent", "episodes", "seeds", "regret", "curve", "guarantee"]
    assert set(contract + ["timing"]) <= set(report)
    assert set(report["regret"]) == {"mean", "std", "ci95", "per_seed"}
    assert set(report["curve"]) == {"episode", "mean", "lo", "hi"}
    assert set(report["timing"]) == {"seconds", "episodes_per_second"}
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["guarantee"]["simulated"] is True and report["guarantee"]["epsilon"] is None
    assert report["episodes"] == 400 and report["seeds"] == [0, 1, 2, 3, 4]


def test_the_interval_is_students_t(result) -> None:
    mean, low, high = result.band()
    sample = result.regret[:, -1]
    expected = stats.t.interval(0.95, 4, sample.mean(), stats.sem(sample))
    assert (low[-1], high[-1]) == pytest.approx(expected)
    assert result.to_json()["regret"]["ci95"] == pytest.approx(list(expected))
    assert result.to_json()["regret"]["std"] == pytest.approx(sample.std(ddof=1))


def made(late: list[float], **changes: Any) -> tacit.Result:
    """A result of two checkpoints, whose last tenth of the users lost that much each."""
    problem = {"optimal_value": 2.0, "baseline": {"name": "uniform policy", "value": 1.0}}
    facts: dict[str, Any] = {
        "problem": problem,
        "agent": {"name": "x", "parameters": {"epsilon": 1.0}, "notes": []},
        "guarantee": tacit.guarantee("random-mdp", "psrl", 10).to_json(),
        "seed": 0,
        "seeds": list(range(len(late))),
        "requested_episodes": 100,
        "interrupted": False,
        "timing": {"seconds": 1.0, "episodes_per_second": 1.0},
        **changes,
    }
    ends = [0.5 * 90 + 10 * lost for lost in late]
    curves = {
        "episode": [90, 100] * len(late),
        "regret": [x for end in ends for x in (0.5 * 90, end)],
        "reward": [0.0, 0.0] * len(late),
    }
    return tacit.Result.from_json(facts, curves)


def test_a_run_that_ends_no_better_than_the_baseline_says_so() -> None:
    assert made([0.1, 0.2, 0.15]).warning == ""
    worse = made([1.2, 0.9, 1.1])
    assert worse.warning == worse.to_json()["warning"]
    assert worse.warning == (
        "Not better than the uniform policy: the last 10 of 100 users lost 1.067 each, and with "
        "the uniform policy they would have lost 1."
    )
    assert made([*[0.1] * 9, 1.2]).warning == (
        "1 of 10 runs ended no better than the uniform policy, which loses 1: run 9 (1.2)."
    )
    assert made([1.0]).warning.startswith("Not better") and made([0.9]).warning == ""
    assert made([0.0, 1.8]).warning.startswith("Not shown to be better than the uniform policy (2")
    nothing = {"optimal_value": 1.0, "baseline": {"name": "input zero", "value": 1.0}}
    assert "nothing to learn here: the input zero" in made([0.0], problem=nothing).warning
    control = {"optimal_value": 1.0, "baseline": {"name": "do nothing", "value": 0.0}}
    assert made([1.0, 1.0], problem=control).warning.startswith(
        "It ended by doing nothing, because"
    )
    assert made([1.2, 1.0], problem=control).warning.startswith("Not better than doing nothing: ")


def test_references_are_not_told_that_they_do_not_learn() -> None:
    problem = tacit.problem("river-swim", states=3, horizon=4)
    assert tacit.simulate(problem, tacit.agent("uniform"), 50).warning == ""
    assert "Not better" in tacit.simulate(problem, tacit.agent("ldp-obi", epsilon=0.01), 50).warning


def test_intervals_of_regret_are_not_negative() -> None:
    apart = made([0.0, 9.0])
    assert apart.regret[:, -1].mean() - apart.regret[:, -1].std() * 12.7 < 0
    assert (apart.band()[1] >= 0).all() and apart.to_json()["regret"]["ci95"][0] == 0.0


def test_one_run_has_no_interval() -> None:
    one = tacit.simulate(tacit.problem("random-mdp", seed=1), tacit.agent("psrl"), 50)
    assert np.isnan(one.band()[1]).all()
    report = one.to_json()
    assert report["regret"]["ci95"] == [None, None] and report["regret"]["std"] is None
    assert set(report["curve"]["lo"]) == {None}


def test_the_frame_is_tidy(result) -> None:
    frame = result.frame()
    assert list(frame.columns) == ["seed", "episode", "regret", "reward"]
    assert len(frame) == result.regret.size
    row = frame[(frame.seed == 3) & (frame.episode == 100)]
    assert row.regret.item() == result.regret[3][list(result.episodes).index(100)]


def test_windows_need_checkpoints(result) -> None:
    total = result.regret_per_episode(0, 100) * 100 + result.regret_per_episode(100, 400) * 300
    assert total == pytest.approx(result.regret[:, -1])
    with pytest.raises(ValueError, match="checkpoints"):
        result.regret_per_episode(0, 101)
    with pytest.raises(ValueError, match="checkpoints"):
        result.regret_per_episode(100, 1000)


def test_save_and_load_give_the_same_result(result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "deep" / "run")
    loaded = tacit.Result.load(folder)
    assert loaded.to_json() == result.to_json()
    assert np.array_equal(loaded.reward, result.reward)
    assert pd.read_parquet(folder / "curves.parquet").equals(result.frame())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {"versions", "machine", "guarantee", "seeds", "agent", "problem"} <= set(manifest)
    assert manifest["guarantee_digest"] == result.guarantee.digest()
    assert not list(folder.glob("*.part"))
    assert pq.read_schema(folder / "curves.parquet").names == list(result.frame().columns)


def test_a_saved_result_is_not_overwritten_by_accident(result, tmp_path: Path) -> None:
    result.save(tmp_path)
    with pytest.raises(InvalidInput, match="already holds a result"):
        result.save(tmp_path)
    result.save(tmp_path, overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="is a file"):
        result.save(tmp_path / "file")


def test_damaged_folders_are_refused_with_words(result, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no result"):
        tacit.Result.load(tmp_path)
    folder = result.save(tmp_path / "run")
    manifest = folder / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"format": 1', '"format": 99'))
    with pytest.raises(InvalidInput, match="format 99"):
        tacit.Result.load(folder)
    manifest.write_text(text[:50])
    with pytest.raises(InvalidInput, match="not valid JSON"):
        tacit.Result.load(folder)


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_plots_are_drawn(result, tmp_path: Path, ending: str) -> None:
    file = result.plot(tmp_path / "new" / f"regret.{ending}", log=ending == "pdf")
    assert file.stat().st_size > 5_000


def test_the_plot_names_what_it_shows(result, tmp_path: Path) -> None:
    text = result.plot(tmp_path / "regret.svg").read_text()
    for word in ("psrl", "not private", "5 runs", "uniform policy", "random-mdp"):
        assert f"<!-- {word}" in text or word in text
    bare = result.plot(tmp_path / "bare.svg", baseline=False).read_text()
    assert "uniform policy" not in bare


def test_the_plot_explains_its_band_and_is_logarithmic(result, tmp_path: Path) -> None:
    text = result.plot(tmp_path / "regret.svg").read_text()
    assert (
        "<!-- line: mean over runs; band: its 95% interval over runs, at every point for itself -->"
        in text
    )
    assert "posterior sampling" in text and "10^{" in text
    linear = result.plot(tmp_path / "linear.svg", log=False).read_text()
    assert "10^{" not in linear


def test_notebooks_show_the_curve_and_the_guarantee(result) -> None:
    shown = result._repr_html_()
    assert "random-mdp" in shown and "data:image/png;base64," in shown
    assert result.guarantee._repr_html_() in shown
    assert "<b>not private</b>" in shown


def test_a_plot_with_an_unknown_ending_is_refused(result) -> None:
    with pytest.raises(InvalidInput, match="must end in .png, .pdf, .svg"):
        result.plot("regret.docx")


def test_regret_is_finite_and_nonnegative(result) -> None:
    assert math.isclose(result.regret.min(), 0.0, abs_tol=1e-9) or result.regret.min() > 0
