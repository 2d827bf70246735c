"""What charges add up to by another way: dp-accounting composes their privacy losses on a grid."""

import math
from collections.abc import Iterable

from dp_accounting.pld import privacy_loss_distribution as pld

from tacit.privacy.charges import Charge, CopiesCharge, GaussianCharge, PureCharge


def composed_delta(charges: Iterable[Charge], epsilon: float) -> float:
    """Delta at epsilon of all of them together, each at its worst; the grid rounds up."""
    mu_squared, whole = 0.0, None
    for charge in charges:
        copies = charge if isinstance(charge, CopiesCharge) else CopiesCharge(charge, 1)
        one = copies.charge
        if isinstance(one, GaussianCharge):
            mu_squared += copies.count * one.mu_squared
            continue
        assert isinstance(one, PureCharge)
        likely = -math.log1p(math.exp(-one.epsilon))
        rare = likely - one.epsilon
        part = pld.from_two_probability_mass_functions(
            {0: rare, 1: likely}, {0: likely, 1: rare}
        ).self_compose(copies.count)
        whole = part if whole is None else whole.compose(part)
    if mu_squared > 0.0:
        part = pld.from_gaussian_mechanism(1.0 / math.sqrt(mu_squared))
        whole = part if whole is None else whole.compose(part)
    return 0.0 if whole is None else float(whole.get_delta_for_epsilon(epsilon))
