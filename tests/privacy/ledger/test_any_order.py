"""A ledger through any order of calls, restarts and torn appends."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from privacy.composed import composed_delta
from privacy.ledger.files import BUDGET, TENTH, create
from tacit.privacy.charges import Charge, CopiesCharge, GaussianCharge, PureCharge
from tacit.privacy.filter import BudgetExhausted, Cost
from tacit.privacy.ledger import (
    Ledger,
)

ASKED = st.one_of(
    st.floats(1e-4, 0.2).map(PureCharge),
    st.floats(1e-6, 0.01).map(GaussianCharge),
    st.builds(CopiesCharge, st.just(PureCharge(0.003)), st.integers(1, 9)),
    st.sampled_from([TENTH, PureCharge(5e-324), GaussianCharge(0.0)]),
)


class Life(RuleBasedStateMachine):
    """A ledger through any sequence of requests, restarts and torn appends."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = mock.patch.object(os, "fsync")
        self.patch.start()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger"
        self.ledger = create(self.path)
        self.status: dict[str, tuple[str, Charge]] = {}
        self.closed = False
        self.made = 0

    def teardown(self) -> None:
        self.ledger.close()
        self.folder.cleanup()
        self.patch.stop()
        charges = [charge for _, charge in self.status.values()]
        slack = 1e-3 * len(charges)  # the grid on which losses are composed rounds up
        assert composed_delta(charges, BUDGET.epsilon + slack) <= BUDGET.delta

    def ask(self, call: Callable[[Charge, str], object], charge: Charge, outcome: str) -> None:
        self.made += 1
        node, admitted = f"node {self.made}", True
        try:
            self.ledger.filter.reserve(charge)  # of a copy: nothing is spent
        except BudgetExhausted:
            admitted = False
        try:
            call(charge, node)
        except BudgetExhausted as refusal:
            assert self.closed or not admitted
            assert not (refusal.spent + refusal.reserved + refusal.asked).within(BUDGET.caps) or (
                self.closed
            )
            self.closed = True
        else:
            assert admitted and not self.closed
            self.status[node] = (outcome, charge)

    @rule(charge=ASKED)
    def reserve(self, charge: Charge) -> None:
        self.ask(self.ledger.reserve, charge, "reserved")

    @rule(charge=ASKED)
    def spend(self, charge: Charge) -> None:
        self.ask(self.ledger.spend, charge, "committed")

    def held(self) -> list[str]:
        return [node for node, (outcome, _) in self.status.items() if outcome == "reserved"]

    @precondition(held)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.held()))
        self.ledger.commit(node)
        self.status[node] = ("committed", self.status[node][1])

    @precondition(held)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.held()))
        self.ledger.cancel(node)
        del self.status[node]

    @rule(torn=st.sampled_from([b"", b"{", b'{"charge":{"kind":"pure"']))
    def restart(self, torn: bytes) -> None:
        before, entries = self.ledger.as_json(), self.ledger.entries
        self.ledger.close()
        self.path.write_bytes(self.path.read_bytes() + torn)
        self.ledger = Ledger.open(self.path, task="task", head=before["head"])
        assert self.ledger.as_json() == before and self.ledger.entries == entries

    @invariant()
    def the_ledger_agrees(self) -> None:
        filter, entries = self.ledger.filter, self.ledger.entries
        assert {n: (e.status, e.charge) for n, e in entries.items()} == self.status
        assert filter.closed == self.closed
        for outcome, amount in (("committed", filter.spent), ("reserved", filter.reserved)):
            assert amount == sum((e.cost for e in entries.values() if e.status == outcome), Cost())
        assert (filter.spent + filter.reserved).within(BUDGET.caps)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
