"""The recorder itself: nobody is left out, and a change of one bit is seen and named."""

import json

import numpy as np
import pytest

from golden import machine, record
from golden.cases import AGENTS, Case, cases
from golden.digests import array_bytes, digest
from golden.measure import measure
from tacit.agents.catalogue import AGENTS as CATALOGUE

RECORDED = record.recorded(record.FOLDER / "digests.json")


@pytest.mark.parametrize("name", record.names("thorough"))
@pytest.mark.slow
def test_long_runs_are_as_recorded(name: str) -> None:
    record.check("thorough", name)


def test_every_agent_of_the_catalogue_is_recorded_somewhere() -> None:
    assert AGENTS.keys() == CATALOGUE.keys()
    fitting = {case.agent for name, case in cases().items() if "fits" not in RECORDED[name]}
    assert fitting == AGENTS.keys()
    refused = [case for name, case in cases().items() if "fits" in RECORDED[name]]
    assert all(case.parameters == AGENTS[case.agent] for case in refused)  # no option is in vain


def test_the_files_hold_exactly_the_cases_in_order() -> None:
    for kind, families in record.SETS.items():
        path = record.FOLDER / f"{kind}.json"
        wanted = [name for family in families for name in record.names(family)]
        assert {record.file_of(name) for name in wanted} == {path}
        assert list(record.recorded(path)) == [record.HEADER, *sorted(wanted)]
        assert len(path.read_text().splitlines()) == len(wanted) + 3


PAGE = record.FOLDER.parents[1] / "docs" / "architecture.md"


@pytest.mark.parametrize(
    ("text", "in_law", "stepwise"),
    [
        (record.__doc__.replace("``", "`"), "Equal in law only", "Without a loop"),
        (PAGE.read_text(), "equal the driver in law", "Stepwise only"),
    ],
)
def test_it_is_said_truly_which_loops_are_equal_in_law_only(text, in_law, stepwise) -> None:
    said = " ".join(text.split())
    law = {c.agent for n, c in cases().items() if RECORDED[n].get("loop", "").endswith("law")}
    none = {c.agent for n, c in cases().items() if RECORDED[n].get("loop") == "none"}
    for beginning, agents in ((in_law, law), (stepwise, none)):
        sentence = said[said.index(beginning) :].partition(".")[0]
        named = {agent for agent in AGENTS if f"`{agent}`" in sentence}
        assert named == agents, beginning


def test_loops_said_to_be_equal_in_bits_have_the_curves_of_the_driver() -> None:
    equal = [found for found in RECORDED.values() if found.get("loop", "").endswith("bits")]
    assert len(equal) > 100
    for part in ("regret", "reward"):
        assert all(found[f"loop {part}"] == found[f"driver {part}"] for found in equal)


def test_one_bit_changes_a_digest() -> None:
    x = np.linspace(0.0, 1.0, 5)
    y = x.copy()
    y[3] = np.nextafter(y[3], 2.0)
    assert digest([array_bytes(x)]) != digest([array_bytes(y)])
    assert array_bytes(0.0) != array_bytes(-0.0)
    assert array_bytes(x.astype(">f8")) == array_bytes(x[::1]) != array_bytes(x[::-1])
    assert digest([b"ab", b"c"]) != digest([b"a", b"bc"])


def test_another_seed_changes_every_digest_that_is_drawn(monkeypatch) -> None:
    case = Case("pooled", "ldp-psrl", AGENTS["ldp-psrl"])
    before = measure(case)
    monkeypatch.setattr("golden.measure.ROOT", 1)
    after = measure(case)
    same = {part for part in before if before[part] == after[part]}
    assert same == {part for part in before if "guarantee" in part} | {"loop"}


def test_a_mismatch_names_the_case_the_part_the_machine_and_the_way_out(monkeypatch) -> None:
    name = "pooled psrl"
    other = {**RECORDED[record.HEADER], f"{machine.ARITHMETIC}BLAS": "0"}
    now = {record.HEADER: other, name: {**RECORDED[name], "loop regret": "0"}}
    monkeypatch.setattr(record, "answers", lambda family: now)
    monkeypatch.setattr(machine, "reason_to_skip", lambda: None)
    with pytest.raises(pytest.fail.Exception) as caught:
        record.check("tabular", name)
    for said in (
        name,
        "loop regret: recorded",
        "arithmetic of BLAS: recorded",
        "record.py --write",
    ):
        assert said in str(caught.value)


def test_a_case_that_breaks_is_told_as_it_is_and_the_others_go_on(monkeypatch) -> None:
    def broken(case, episodes):
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(record, "measure", broken)
    assert "ZeroDivisionError: in the middle" in record.measured("thorough pooled psrl")["failed"]


def test_other_systems_are_a_reason_to_skip(monkeypatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(pytest.skip.Exception, match="this is Linux aarch64"):
        record.check("tabular", "pooled psrl")


@pytest.mark.skipif(machine.reason_to_skip() is not None, reason=str(machine.reason_to_skip()))
def test_arithmetic_is_held() -> None:
    """That of every library, on any processor, by a process without a single case."""
    recorded, here = RECORDED[record.HEADER], record.answers("nothing")[record.HEADER]
    for name in here:
        if name.startswith(machine.ARITHMETIC):
            assert here[name] == recorded[name], machine.differences(recorded, here)


def test_floats_are_added_from_left_to_right() -> None:
    assert machine.from_left_to_right([1.0, 1e100, 1.0, -1e100]) == 0.0
    assert machine.from_left_to_right([[1], [2]], []) == [1, 2]


def test_recording_again_gives_the_same_file(tmp_path) -> None:
    record.write(tmp_path / "again.json", RECORDED)
    assert json.loads((tmp_path / "again.json").read_text()) == RECORDED
