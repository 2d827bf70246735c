"""The recorder itself: nobody is left out, and a change of one bit is seen and named."""

import json

import numpy as np
import pytest

from golden import record
from golden.cases import AGENTS, FAMILIES, Case, cases
from golden.digests import array_bytes, digest
from golden.machine import header, obstacles
from golden.measure import measure
from tacit.agents.catalogue import AGENTS as CATALOGUE

DIGESTS, LONG = record.FOLDER / "digests.json", record.FOLDER / "thorough.json"
RECORDED = record.recorded(DIGESTS)


@pytest.mark.parametrize("name", record.names("thorough"))
@pytest.mark.slow
def test_long_runs_are_as_recorded(name: str) -> None:
    record.check(name)


def test_every_agent_of_the_catalogue_is_recorded_somewhere() -> None:
    assert AGENTS.keys() == {name for name, *_ in CATALOGUE}
    fitting = {case.agent for name, case in cases().items() if "fits" not in RECORDED[name]}
    assert fitting == AGENTS.keys()
    refused = [case for name, case in cases().items() if "fits" in RECORDED[name]]
    assert all(case.parameters == AGENTS[case.agent] for case in refused)  # no option is in vain


def test_the_files_hold_exactly_the_cases_in_order() -> None:
    short = [name for family in (*FAMILIES, "service") for name in record.names(family)]
    for path, wanted in ((DIGESTS, short), (LONG, record.names("thorough"))):
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


def test_a_mismatch_names_the_case_the_part_and_the_way_out(monkeypatch) -> None:
    name = "pooled psrl"
    monkeypatch.setattr(record, "obstacles", lambda found: [])
    monkeypatch.setattr(record, "measured", lambda name: {**RECORDED[name], "loop regret": "0"})
    with pytest.raises(pytest.fail.Exception) as caught:
        record.check(name)
    for said in (name, "loop regret: recorded", "record.py --write"):
        assert said in str(caught.value)


def test_other_libraries_and_processors_are_a_reason_to_skip(monkeypatch) -> None:
    assert obstacles(header()) == []
    other = {**header(), "numba": "0.1", "arithmetic of BLAS": "0"}
    assert [reason.partition(":")[0] for reason in obstacles(other)] == [
        "numba",
        "arithmetic of BLAS",
    ]
    assert obstacles({**header(), "processor features": "none"}) == []
    monkeypatch.setattr(record, "obstacles", lambda found: ["numba: recorded 0.1, here 0.2"])
    with pytest.raises(pytest.skip.Exception, match="numba: recorded 0.1"):
        record.check("pooled psrl")


def test_recording_again_gives_the_same_file(tmp_path) -> None:
    record.write(tmp_path / "again.json", {n: d for n, d in RECORDED.items() if n != record.HEADER})
    again = json.loads((tmp_path / "again.json").read_text())
    assert {**again, record.HEADER: RECORDED[record.HEADER]} == RECORDED
