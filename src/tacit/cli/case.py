"""Which problem, which agent, for how many users: what most commands begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.agents.base import Agent
from tacit.agents.catalogue import agents, make_agent
from tacit.cli.values import assignments, read, read_parameters, whole
from tacit.errors import InvalidInput
from tacit.problems.base import Problem
from tacit.problems.catalogue import make_problem, problem_entry


@dataclass(frozen=True)
class Case:
    """The options as typed; reading them reports the first mistake."""

    problem_name: str
    agent_name: str
    problem_pairs: Sequence[str]
    agent_pairs: Sequence[str]
    privacy: Mapping[str, str | None]
    episodes_text: str
    reveal: Sequence[str]

    def problem(self) -> Problem:
        """The problem, from its name and ``-P`` pairs."""
        texts = assignments(self.problem_pairs, "-P")
        entry = problem_entry(self.problem_name)
        return make_problem(self.problem_name, **read_parameters(entry, texts))

    def agent(self) -> Agent:
        """The agent, from its name, ``-A`` pairs and the privacy options that were given."""
        entry = agents.entry(self.agent_name)
        parameters = read_parameters(entry, assignments(self.agent_pairs, "-A"))
        for option, text in self.privacy.items():
            if text is None:
                continue
            if option in parameters:
                raise InvalidInput(f"{option} is given twice: by -A and by --{option}")
            declared = entry.parameters.get(option)
            parameters[option] = read(text, option, declared.annotation) if declared else text
        return make_agent(self.agent_name, **parameters)

    def episodes(self) -> int:
        """The number of users."""
        return whole(self.episodes_text, "--episodes")
