"""All broken mechanisms, each with its detector and the right mechanism beside it."""

from contracts.sampler import misfits
from corpus import Detector, Mutant, agents, detectors, linear, planted, returning, tabular
from dense import dense
from tacit.learner import Learner
from tacit.planners.references import UniformPlanner
from tacit.privacy import SecureNoise
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.counters.tree import Tree
from tacit.privacy.curator.curator import Curator
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection
from tacit.privacy.joint.batched import BatchSums
from tacit.privacy.joint.counted import CountedSums
from tacit.privacy.local.additive import LocalAdditive
from tacit.privacy.local.one_cell import OneCell
from tacit.privacy.local.weighted import LocalWeighted
from tacit.simulation import resume
from tacit.statistics.counts import VisitCounts
from tacit.statistics.linear import CuratedTransitions
from tacit.statistics.norm_budget import NormBudget
from tacit_service.storage.ledger import whole_charge
from tacit_service.storage.witness import Witness

AUDIT = "audit"
"""The name of the detectors that are the auditor itself."""

REPORT = Detector(AUDIT, detectors.one_report_is_refuted)
LEARNER = Detector(AUDIT, detectors.learner_is_refuted)
CURATOR = Detector(AUDIT, detectors.violated_by_curator)
WHOLE_AGENT = Detector(AUDIT, detectors.agents_are_refuted)
LAW = "exact output laws"
REPORT_LAW = Detector(LAW, detectors.answers_another_law)
ORACLE_LAW = Detector(LAW, detectors.names_cells_by_another_law)
RESPONSE_LAW = Detector(LAW, detectors.more_than_claimed)
SAMPLER = Detector("law of the noise", lambda kind: misfits(kind(), "laplace"))
CONTRACT = Detector("contract of privatizers", detectors.contract_fails)
PAID = "price of participations"
BATCH_PAID = Detector(PAID, detectors.batch_is_unpaid)
CURATOR_PAID = Detector(PAID, detectors.curator_is_unpaid)
REPORT_PAID = Detector(PAID, detectors.report_is_unpaid)
LIVES = Detector(AUDIT, returning.lives_are_refuted)
LIFE = "brute force over lives"
RESTARTS = Detector(LIFE, returning.teaches_again_after_restarts)
SHIFTED = Detector(LIFE, returning.empty_visits_shift_the_counter)
PERIODS = Detector(LIFE, returning.periods_are_counted_together)
SHORT = Detector(LIFE, returning.short_visits_exceed_the_budget)
MIDDLE = Detector(LIFE, returning.batch_is_in_two_periods)
CHOSEN = Detector(LAW, returning.tells_by_what_is_reported)
CHARGES = "charges and caps"
CAP = Detector(CHARGES, detectors.answers_too_often)
CHARGE = Detector(CHARGES, detectors.charges_too_little)
DIGITS = Detector("high precision", detectors.calibrated_beyond)
MOVED = "search for a larger sensitivity"
COUNTS = Detector(MOVED, lambda kind: detectors.exceeds_sensitivity(kind(detectors.TASK)))
CELLS = Detector("covariance of releases", detectors.cell_is_short_of_noise)
RESTORED = Detector("restored databases", detectors.takes_other_content)
GRAM = Detector(MOVED, detectors.gram_exceeds_sensitivity)
COUNTER = Detector("counter algebra", detectors.counts_wrongly)
BLIND = Detector("blindness", detectors.reads_raw_sums)
REGRET = Detector("regret check", detectors.hides_negative_regret)
TIES = Detector("tie check", detectors.prefers_the_first_action)

PUBLIC: tuple[Mutant, ...] = (
    *(
        Mutant(name, mistake, REPORT, broken, LocalAdditive)
        for name, mistake, broken in (
            ("shared draw", "one draw is added to every cell", tabular.SharedDraw),
            ("not added", "noise is drawn and not added", tabular.NotAdded),
            ("side field", "one field has no noise", tabular.SideField),
            ("horizon", "the unit is the step, not the user", tabular.HorizonForgotten),
            ("constant", "a root of two is missing", tabular.ConstantMiscopied),
            ("plot", "the constant was tuned for a plot", tabular.TunedForAPlot),
            ("halved", "half the noise", tabular.HalvedNoise),
            ("relation", "add-remove for replace", tabular.AddRemoveRelation),
        )
    ),
    Mutant("once", "noise is drawn once for ever", LEARNER, tabular.OnceForEver, LocalAdditive),
    Mutant("keys", "random keys are reused", LEARNER, tabular.ReusedKeys, LocalAdditive),
    Mutant("seeded", "noise has a seed of its own", CONTRACT, tabular.Seeded, LocalAdditive),
    Mutant("redrawn", "the same release gets new noise", CONTRACT, tabular.Redrawn, LocalAdditive),
    Mutant(
        "response",
        "a probability for 2 epsilon",
        RESPONSE_LAW,
        tabular.overconfident_response,
        KaryResponse.calibrate,
    ),
    Mutant("unclipped", "rewards leave their range", COUNTS, tabular.UnclippedRewards, VisitCounts),
    Mutant("coordinates", "clipped by coordinate", COUNTS, tabular.PerCoordinateClip, VisitCounts),
    Mutant(
        "raw widths",
        "the bonus reads exact sums",
        BLIND,
        tabular.RawWidths,
        lambda peek: UniformPlanner(),
    ),
    Mutant("log base", "natural logarithm in the tree", COUNTER, tabular.NaturalLog, Tree),
    Mutant("power of two", "off by one at powers of two", COUNTER, tabular.PowerOfTwo, Tree),
    Mutant("cover", "the wrong dyadic cover", COUNTER, tabular.WrongCover, Tree),
    Mutant(
        "abs", "regret is made positive", REGRET, tabular.absolute_regret, lambda regret: regret
    ),
    Mutant("first action", "ties go to action 0", TIES, tabular.first_action, dense.greedy),
    Mutant("E1", "one draw of noise for all releases", CURATOR, linear.DrawnOnce, Curator),
    Mutant("E2", "the same draw added at every release", CURATOR, linear.AddedAgain, Curator),
    Mutant("E3", "add-remove for the Gram matrix", GRAM, linear.AddRemoveGram, CuratedTransitions),
    Mutant("E4", "features of norm 3", GRAM, linear.LongFeatures, CuratedTransitions),
)
"""Mistakes that published code and papers made."""

PLANTED: tuple[Mutant, ...] = (
    Mutant(
        "halved noise, whole agent",
        "an agent draws half the noise that it claims",
        WHOLE_AGENT,
        agents.LessNoiseAgent,
        agents.as_it_is,
    ),
    Mutant(
        "forgotten participation, whole agent",
        "an agent pays for one participation where people come back",
        WHOLE_AGENT,
        agents.ForgottenParticipations,
        agents.as_it_is,
    ),
    Mutant(
        "answered again",
        "the device answers again if its own cell is missing",
        REPORT_LAW,
        planted.AnsweredAgain,
        OneCell,
    ),
    Mutant(
        "raised chance",
        "the own cell is named a little too often",
        ORACLE_LAW,
        planted.RaisedChance,
        SubsetSelection,
    ),
    Mutant(
        "short noise",
        "the secure sampler's scale is a tenth short",
        SAMPLER,
        planted.ShortLaplace,
        SecureNoise,
    ),
    Mutant(
        "batch once",
        "participations are forgotten in batches",
        BATCH_PAID,
        planted.OncePaidBatch,
        BatchSums,
    ),
    Mutant(
        "batch root",
        "participations in one batch count as their root",
        BATCH_PAID,
        planted.RootPaidBatch,
        BatchSums,
    ),
    Mutant(
        "curator once",
        "participations are forgotten by the curator",
        CURATOR_PAID,
        planted.OncePaidCurator,
        Curator,
    ),
    Mutant(
        "report once",
        "participations are forgotten in weighted reports",
        REPORT_PAID,
        planted.OncePaidReport,
        LocalWeighted,
    ),
    Mutant(
        "silent cell",
        "the last cell of a batch has no noise",
        CELLS,
        planted.SilentCell,
        BatchSums,
    ),
    Mutant(
        "halved cell",
        "the first cell of a batch has half the noise",
        CELLS,
        planted.HalvedCell,
        BatchSums,
    ),
    Mutant(
        "newest only",
        "a database two releases behind is not compared",
        RESTORED,
        planted.NewestOnly,
        Witness,
    ),
    Mutant("soft cap", "more rounds than declared are answered", CAP, planted.SoftCap, Curator),
    Mutant(
        "small charge",
        "the charge is below the true mu^2",
        CHARGE,
        planted.charged_by_epsilon,
        whole_charge,
    ),
    Mutant(
        "no digits",
        "calibration subtracts two numbers that agree in all digits",
        DIGITS,
        planted.cancelling_mu,
        gaussian_mu,
    ),
)
"""Mistakes that were planted here, and that every test of their time let pass."""

RETURNING: tuple[Mutant, ...] = (
    Mutant(
        "memory ignored",
        "a pair is counted once per participation, not once in a life",
        LIVES,
        returning.ForgetfulAgent,
        agents.as_it_is,
    ),
    Mutant(
        "memory forgotten",
        "after a restart nobody is remembered",
        RESTARTS,
        returning.state_without_memory,
        resume.state,
    ),
    Mutant(
        "report by reward",
        "a device reports the participation that was paid best",
        CHOSEN,
        returning.best_paid_of_period,
        returning.first_of_period,
    ),
    Mutant(
        "empty visits",
        "participations that teach nothing take no place in a batch",
        SHIFTED,
        returning.CountsTeachersOnly,
        Learner,
    ),
    Mutant(
        "free trifles",
        "short participations cost nothing of a norm budget",
        SHORT,
        returning.FreeTrifles,
        NormBudget,
    ),
    Mutant(
        "half a renewal",
        "a new period clears the memory, and the counter runs on",
        PERIODS,
        returning.ClearsMemoryOnly,
        Learner,
    ),
    Mutant(
        "renewal in a batch",
        "a batch is in two periods, and its people are counted in both",
        MIDDLE,
        returning.RenewsAnyTime,
        CountedSums,
    ),
)
"""Mistakes about people who come back."""

CORPUS = PUBLIC + PLANTED + RETURNING
