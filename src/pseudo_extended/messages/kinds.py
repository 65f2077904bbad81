"""All kinds of messages. Each has a section in docs/howto/warnings.md: what it means, how it looks, and what to try.

The first digit says what it is about: 0 the target, 1 the steps of a chain, 2 the agreement of chains, 3 the path
between base and target, 4 the evidence, 5 modes, 6 the run and its store, 7 one method alone.
"""

from pseudo_extended.messages.message import Kind, Message

# 0: the target.
NOTE = Kind("PE001", "note", "A note", "{text}")
DOUBT = Kind("PE002", "warning", "A doubt about the target", "{text}")
LOW_PRECISION = Kind(
    "PE003",
    "warning",
    "A density in low precision",
    "{name} returns {dtype}: it is computed in low precision somewhere, which limits step sizes.",
)
INDEX_OUT_OF_BOUNDS = Kind(
    "PE004",
    "severe",
    "An index out of bounds",
    "{name} indexes out of bounds, where JAX takes the nearest entry: {found}. Indices count from 0.",
)
FUNCTION_RAISED = Kind(
    "PE005",
    "warning",
    "A function that raised an error",
    "{name} raised an error {times}, first {said}; such a point counts as one of density zero: return -inf there if "
    "that is right, and mend the function if not.",
)
UNKNOWN_CONSTANT = Kind(
    "PE006",
    "warning",
    "A density without its constants",
    "PyStan's module drops constants of the density: log_evidence is off by an unknown constant.",
)
CHANGES = Kind(
    "PE007",
    "severe",
    "A density that changes",
    "{name} was {first:.6g} at a position, and later {again:.6g} at the same one: it is random, or depends on "
    "something that changes, so the draws follow no density at all; compute it from its argument alone.",
)

# 1: the steps of a chain.
STUCK = Kind("PE101", "severe", "A chain that never moved", "{which} never moved: all its draws are one point.")
LOW_ACCEPTANCE = Kind(
    "PE102",
    "severe",
    "A low acceptance rate",
    "the mean acceptance rate is {rate:.2g}: the step size did not settle; warm up for longer.",
)
DIVERGED = Kind(
    "PE103",
    "warning",
    "Divergences",
    "{number} of {draws} draws after warm-up diverged: the step size is too large for some part of the extended "
    "target; give the method a kernel with a higher target_acceptance, such as kernel=pe.NUTS(target_acceptance=0.95) "
    "or, in the place of the default's, kernel=pe.HMC(4, target_acceptance=0.95).",
)
NOT_FINITE = Kind(
    "PE104",
    "warning",
    "A density that is not finite",
    "the density or its gradient was not finite on the way to {number} of {draws} draws, and those moves were "
    "rejected: a missing bound, or a base or q that vanishes where the target does not, looks like this.",
)
NAN_WEIGHTS = Kind(
    "PE105",
    "severe",
    "Weights that are NaN",
    "some weights are NaN, so no estimate is valid: the target and its base hardly overlap.",
)
DRIFTED = Kind(
    "PE106",
    "severe",
    "A pseudo-sample that drifts away",
    "a pseudo-sample went {distance:.0e} standard deviations away: the instrument is probably improper, as for heavy "
    "tails at a small beta_min; raise beta_min, or give the target a base.",
)
ONE_HOLDS_ALL = Kind(
    "PE107",
    "warning",
    "One pseudo-sample with all the weight",
    "one of the {particles} pseudo-samples held all the weight (on average {effective:.3f} of them counted): the "
    "others help the chain to move, but add nothing to the estimates.",
)
NO_WEIGHT = Kind(
    "PE108",
    "severe",
    "Draws without weight",
    "no draw has any weight: the path never met the target, and there is nothing to estimate from.",
)
FEW_HOLD_ALL = Kind(
    "PE109",
    "severe",
    "One draw with much of the weight",
    "one of {draws} draws carries {percent:.0f} % of the weight of all: neither the estimates nor their errors can be "
    "trusted; more temperatures, more steps at each or a better base help.",
)
RAN_AWAY = Kind(
    "PE110",
    "severe",
    "Draws without bound",
    "draws of {label} reach {value:.0e}: the density does not fall off there, because it is improper or flat, or "
    "returns rubbish far out; give the parameter a prior or bounds, and return -inf where the density means nothing.",
)
DIVERGED_AND_REACHED = Kind(
    "PE111",
    "note",
    "Divergences of local moves alone",
    "{number} of {draws} draws after warm-up diverged, but {percent:.0f} % of the draws from the base were accepted at "
    "the target, so what local moves cannot enter is reached without them.",
)

# 2: the agreement of chains.
TOO_FEW_DRAWS = Kind(
    "PE201",
    "severe",
    "Too few draws for an error",
    "{draws} draws of a chain are too few for a standard error; the minimum is 8.",
)
NOT_MIXED = Kind(
    "PE202",
    "severe",
    "Chains that have not mixed",
    "the chains disagree: R-hat is {r_hat:.3f} for {label}, and 1.01 is the usual limit. They have not mixed, and no "
    "error in this summary can be trusted: more draws, starts far apart, or a base of your own may help.",
)
DISAGREE = Kind(
    "PE203",
    "warning",
    "Chains that disagree",
    "the chains disagree: R-hat is {r_hat:.3f} for {label}, and 1.01 is the usual limit. Run longer: the errors are "
    "too small, and by a lot where the target has long arms or tails.",
)
FEW_EFFECTIVE = Kind(
    "PE204",
    "warning",
    "Few effective draws",
    "the effective sample size is {ess:.0f} for {label}; the usual minimum for {chains} chain(s) is {least}.",
)
HEAVY_TAILS = Kind(
    "PE205",
    "warning",
    "Tails too heavy for a mean",
    "the tails of {label} are so heavy (a Pareto shape of {shape:.2f}, where 0.5 has no variance and 1 no mean) that "
    "its mean and the error of its mean cannot be trusted; use quantiles, which can.",
)

# 3: the path between base and target.
NO_SWITCH = Kind(
    "PE301",
    "severe",
    "A target that never changed hands",
    "one and the same pseudo-sample carried the target in every draw{of}: nothing that the others found has reached "
    "it; warm up for longer, or give the target a base that is closer to it.",
)
NEVER_HOT = Kind(
    "PE302",
    "severe",
    "A temperature that never went low",
    "the temperature never went below {beta:.2g}{of}: barriers that need more heat were never crossed; lower "
    "beta_min, or warm up for longer.",
)
FEW_ROUND_TRIPS = Kind(
    "PE303",
    "severe",
    "Few round trips",
    "the pseudo-samples of chain {chain} made {trips} round trips between the hot end of the path and the target in "
    "{draws} draws; below 10 a chain the mass of modes far apart is uncertain, whatever the errors say: run longer.",
)
LOCAL_MOVES_REJECTED = Kind(
    "PE304",
    "warning",
    "Local moves that are rejected",
    "only {rate:.0%} of the local moves were accepted at β around {beta:.2g}: the step size did not settle there; "
    "warm up for longer.",
)

# 4: the evidence.
EVIDENCE_UNKNOWN = Kind(
    "PE401",
    "severe",
    "An evidence that is not known",
    "log_evidence is not known: in some chain no draw says anything about a part of the path, as where the target "
    "vanishes at every draw from the base; run longer, or give a base that covers less besides it.",
)
EVIDENCE_OF_FEW = Kind(
    "PE402",
    "severe",
    "An evidence that rests on a few draws",
    "log_evidence rests on a few draws, and its error cannot be trusted: some part of the ladder was hardly visited; "
    "run longer, give a base closer to the target, or, where you gave betas, more of them.",
)
EVIDENCE_DISAGREES = Kind(
    "PE403",
    "severe",
    "Chains that disagree on the evidence",
    "the chains disagree on log_evidence: alone they give {low:.3f} to {high:.3f}, more apart than their own errors "
    "allow; the stated error was raised from {within:.2g} to {error:.2g}, and may still be too small: run longer.",
)

# 5: modes.
MODE_MISSED = Kind(
    "PE501",
    "severe",
    "A mode without draws",
    "ascents {whose} ended in a mode that no chain has visited, at {where}; Laplace's approximation gives it "
    "a probability of {mass:.2g}. Run again with another seed and with that place among the positions of init.",
)
MODE_LATE = Kind(
    "PE502",
    "warning",
    "A mode that was found late",
    "chain {chain} first came to mode {mode}, which has a probability of {mass:.2g}, after {percent:.0f} % of its "
    "draws: its mass, and the evidence, rest on few visits; run longer.",
)
MODE_OF_SOME_CHAINS = Kind(
    "PE503",
    "severe",
    "A mode that some chains never visited",
    "chain {chain} never came to mode {mode}, which has a probability of {mass:.2g} over all chains: the masses of the "
    "modes depend on where the chains started; run longer.",
)
UNSEEN_BASINS = Kind(
    "PE504",
    "warning",
    "Basins that no ascent has seen",
    "{once} of {number} ascents by the {by} ended in a mode of their own: about {unseen:.0%} of such starts (at most "
    "{bound:.0%}) would end in modes not seen yet; whether these have any mass, no ascent can tell.",
)
BASINS_SEEN = Kind(
    "PE505",
    "note",
    "What the ascents have seen",
    "{once} of {number} ascents by the {by} ended in a mode of their own: of such starts at most {bound:.1%} would end "
    "in modes not seen yet. It speaks of basins, and not of their mass.",
)
PILOTS_DISAGREE = Kind(
    "PE506",
    "severe",
    "Pilots that disagree",
    "the chains of different pilots disagree on {what} by {sigmas:.1f} standard errors: some pilot has missed a part "
    "of the target; run again with more pilots or another seed, and with starts far apart.",
)
UNEQUAL_TWINS = Kind(
    "PE507",
    "warning",
    "Equal modes of unequal mass",
    "modes {first} and {second} are equal by symmetry, and their sampled masses differ by {sigmas:.1f} standard "
    "errors: the chains have not mixed between them, and errors of masses are too small; run longer.",
)
MODE_OF_SOME_PILOTS = Kind(
    "PE508",
    "severe",
    "A mode that some pilots have not found",
    "the chains of pilot {pilot} never came to mode {mode}, which has a probability of {mass:.2g} by those of another: "
    "the search for modes finds it by chance, and may have missed others; run again with more pilots.",
)
SEARCH_UNSETTLED = Kind(
    "PE509",
    "warning",
    "A search for modes that did not settle",
    "the search for modes ended after {evaluations} evaluations of the density and had not settled: there may be "
    "modes with mass that it has not found, and log Z is without them; name places that you suspect in a batch init.",
)

# 6: the run and its store.
STOPPED = Kind("PE601", "warning", "A run that was stopped", "{how}: {draws} draws of each chain were kept.")
THINNED = Kind(
    "PE602", "note", "Every k-th draw", "one draw in {thinned} of {store} is in this result; the store has all."
)
ESS_NOT_REACHED = Kind(
    "PE603",
    "warning",
    "A sample size that was not reached",
    "target_ess = {wanted:g} was not reached, {missing}: {limit}.",
)
OTHER_VERSIONS = Kind("PE604", "warning", "Other versions", "the run went on with other versions: {changed}.")
NOT_GOOD_ENOUGH = Kind(
    "PE605",
    "warning",
    "A run that ended before it was good enough",
    "{limit} before its estimates were good: {missing}. Give draws= for a longer run.",
)
NO_ROOM = Kind(
    "PE606",
    "warning",
    "Draws that do not fit into memory",
    "draws = {draws} of {chains} chains take about {needed}, and a run may fill {room}, {share:.0%} of free memory, "
    "so it will end after some {fitting} draws. Pass store= for room on disk, or thin={thin} to keep fewer.",
)
PILOTS_MISSING = Kind(
    "PE607",
    "warning",
    "Pilots that are missing",
    "{number} of {wanted} pilots have draws: the run ended before the others began, so nothing says what they find.",
)

# 7: one method alone.
NOT_STARTED = Kind(
    "PE701",
    "severe",
    "EquiEnergy: a cold chain that waits",
    "the cold chain of EquiEnergy had not started in {waiting} of {draws} draws, which are worth nothing: set warmup "
    "to the method's min_warmup, or more.",
)
LOWEST_RING = Kind(
    "PE702",
    "warning",
    "EquiEnergy: energies that start too high",
    "energies of EquiEnergy start above the lowest -log density that was seen: the paper's sampler would be biased; "
    "here the cold chain is not, but the lowest ring is wider than it was meant to be. Lower the first.",
)
GAVE_UP = Kind(
    "PE703",
    "warning",
    "RepellingAttracting: moves that gave up",
    "{share:.2g} of the steps of RepellingAttracting gave up a forced move: the draws are right, but few; a smaller "
    "scale, or more max_tries, may help.",
)

KINDS: dict[str, Kind] = {kind.code: kind for kind in list(globals().values()) if isinstance(kind, Kind)}
"""All of them by their code."""


def recall(text: str, otherwise: Kind) -> Message:
    """The message that a sentence is, if any kind says so, else one of the given kind.

    >>> recall("the run went on with other versions: jax was 1 and is 2.", DOUBT).code
    'PE604'
    >>> recall("of PyMC.", NOTE).code
    'PE001'
    """
    if isinstance(text, Message):
        return text
    for kind in KINDS.values():
        if kind not in (NOTE, DOUBT) and kind.says(text):
            return kind(**{}) if "{" not in kind.template else Message(text, code=kind.code, severity=kind.severity)
    return otherwise(text=text)
