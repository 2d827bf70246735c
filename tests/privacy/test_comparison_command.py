import json
from pathlib import Path


def statement(call, name: str, *words: str) -> None:
    Path(name).write_text(call(*words, "--json").out)


def test_files_of_run_and_guarantee_are_compared_in_plain_words(call) -> None:
    statement(call, "a.json", "guarantee", "random-mdp", "tacit-local", "--epsilon", "1")
    statement(call, "b.json", "run", "random-mdp", "psrl", "--episodes", "100", "--seeds", "1")
    done = call("guarantee", "--diff", "a.json", "b.json")
    assert done.status == 0 and done.err == ""
    lines = done.out.splitlines()
    assert lines[0] == "A: local epsilon 1 (a.json)"
    assert "  A is local (trusts nobody), B is none (promises nothing)  [A stronger]" in lines
    assert "A protects more: its promise implies B's, and not the other way." in lines
    assert "B was made in simulation: nobody is protected by that run itself." in lines
    report = json.loads(call("guarantee", "--diff", "a.json", "b.json", "--json").out)
    assert report["stronger"] == "A" and report["a"] == "a.json"
    assert {"field", "a", "b", "stronger", "words"} == set(report["differences"][0])


def test_what_cannot_be_read_is_one_line(call) -> None:
    Path("x.json").write_text("{}")
    for words in (("x.json", "x.json"), ("nowhere.json", "x.json"), (".", "x.json")):
        done = call("guarantee", "--diff", *words)
        assert done.status == 2 and done.out == "" and done.err.count("\n") == 1


def test_the_curve_is_drawn(call) -> None:
    done = call("guarantee", "random-mdp", "tacit-joint", "--epsilon", "1", "--curve", "a/c.png")
    assert done.status == 0 and "differential privacy" in done.out
    assert Path("a/c.png").read_bytes().startswith(b"\x89PNG")
    refused = call("guarantee", "random-mdp", "tacit-joint", "--epsilon", "1", "--curve", "c.txt")
    assert refused.status == 2 and ".png" in refused.err and not Path("c.txt").exists()


def test_forms_are_printed_with_what_is_missing(call) -> None:
    words = ("guarantee", "random-mdp", "tacit-local", "--epsilon", "1", "--form")
    done = call(*words, "opendp")
    loss = json.loads(done.out)["deployment"]["privacy_loss"]
    assert done.status == 0 and loss["privacy_parameters"] == {"epsilon": 1.0}
    assert "deployment.basic.name" in done.err
    assert call(*words, "iso").status == 2
    assert call("guarantee", "--diff", "a.json", "b.json", "--form", "nist").status == 2
