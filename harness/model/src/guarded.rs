//! One encoding of all paths of a program, for a SAT solver.
//!
//! Every thread is executed on all of its paths at once (`path::unroll`), so that each event has a guard. The values of a
//! read have a literal each if a fixpoint over the values that writes store finds at most 16; others are
//! bit-vectors. The event structure has all of these events, of which an execution has those whose guards hold.
//!
//! A pair of a node of the model's plan is a bit that has a meaning only if both of its events execute. Its static
//! bounds (`interval`) hold in the same sense: a pair of a sequence is certain only if the event in the middle
//! executes whenever one of its two events does. This is the relation analysis of Dartagnan (Gavrilenko and others,
//! "BMC for Weak Memory Models: Relation Analysis for Compact SMT Encodings", CAV 2019), with guards.
//!
//! Closures are encoded from below: they contain at least the implied pairs, which suffices where only the lower bound
//! of a node matters. Others have a bit for paths of 1, 2, 4, … steps. Races, the question and the loop bound are
//! assumptions on one incremental solver. What is not supported here, such as subgroup operations and conditional
//! control barriers, is left to the other strategies. So are answers that need values out of thin air.

mod coherence;
mod encoding;
mod finals;
mod goal_query;
mod orders;
mod program;

use std::rc::Rc;

#[cfg(feature = "testing")]
use litmus::Race;
use litmus::{LocationId, Observable, ResolvedCondition, Test, ThreadId};
#[cfg(feature = "testing")]
use solver::Budget;
use solver::{Bit, BudgetTracker, Circuit, CircuitSolver};

use self::encoding::GuardedEncoding;
pub(crate) use self::goal_query::{GoalEvidence, SkeletonEncoding};
use self::program::GuardedProgram;
#[cfg(feature = "testing")]
use crate::Model;
use crate::PredictError;
use crate::bounded_test::BoundedTest;
use crate::flags::Flags;
use crate::matrix::{Matrix, with_smallest_matrix};
use crate::outcome_collector::Findings;
use crate::path::unroll::{PossibleValues, ValueSet};
use crate::prepared::PreparedPlan;
use crate::skeleton::{Owner, Tags};
use crate::symmetry::{ThreadSwap, find_swaps};

/// Rounds of the analysis of possible values before sets that still grow have all of them.
const MAX_EXACT_ROUNDS: usize = 20;

/// Decides races and the question of a test; `None` if that is not possible here.
///
/// Outcomes are not listed. A search that was cut short has the findings so far.
pub(crate) fn decide_program(
    bounded: BoundedTest<'_>,
    tracker: &BudgetTracker<'_>,
) -> Result<Option<Findings>, PredictError> {
    let BoundedTest { test, compiled, observables, semantic, unroll } = bounded;
    if tracker.is_exhausted() {
        return Ok(None);
    }
    let initial = |index| ValueSet::Few([test.initial_value(LocationId(index as u16), 0).0].into());
    let possible = (0..test.locations.len()).map(initial).collect();
    let fitted = fit_values(possible, tracker, |possible, circuit| {
        GuardedProgram::new(test, observables, semantic, unroll, possible, circuit)
    })?;
    let Some((program, solver)) = fitted else { return Ok(None) };
    let program = Rc::new(program);
    // Runs that do not end have no final values of memory, which a filter may name.
    if test.filter.is_some() && program.ended != Bit::TRUE {
        return Ok(None);
    }
    let prepared = compiled.prepare_plan(&program.skeleton).with_missing_events();
    let swaps = find_swaps(test, semantic);
    with_smallest_matrix!(program.skeleton.len(), M => {
        match GuardedEncoding::<M>::new(program.clone(), &prepared, solver)? {
            Some(encoding) => Ok(find_answers(test, observables, &program, &prepared, &swaps, encoding)),
            None => Ok(None),
        }
    })
}

/// Builds a program whose reads return all values that its writes may store, and few more.
///
/// The values flow from writes to reads until nothing changes. Only a value that depends on itself may come from
/// elsewhere, and such a read returns any value.
fn fit_values<'t, E>(
    sets: Vec<ValueSet>,
    tracker: &'t BudgetTracker<'t>,
    mut build: impl FnMut(&PossibleValues, &mut Circuit) -> Result<Option<GuardedProgram>, E>,
) -> Result<Option<(GuardedProgram, CircuitSolver<'t>)>, E> {
    let mut possible = PossibleValues { sets, ignores_branches: true };
    for round in 0.. {
        let mut solver = CircuitSolver::new(tracker);
        let Some(program) = build(&possible, &mut solver.circuit)? else { return Ok(None) };
        if !possible.ignores_branches {
            return Ok(Some((program, solver)));
        }
        possible.ignores_branches = program.grow_values(&mut possible, round >= MAX_EXACT_ROUNDS);
    }
    Ok(None)
}

/// Steps of the attempts with the encoding of all paths. The first ones cost a tenth of a second at most, later ones, which
/// resolve conflicts, up to a hundred times as much.
const ENCODING_STEPS: [u64; 3] = [10_000, 56_000, 400_000];

/// Steps of the searches path by path that follow these attempts.
const SEARCH_STEPS: [u64; 3] = [20_000, 200_000, 8_000_000];

/// Steps of the solver that take about as long as one step of a search.
const SOLVER_STEPS_PER_STEP: u64 = 64;

/// Numbers of events for which the encoding is the first attempt: smaller tests are searched at once, and larger ones
/// take long to encode.
const ENCODED_FIRST: std::ops::RangeInclusive<usize> = 24..=150;

/// Decides a test of about this number of events by the encoding of all paths and by the search path by path, which get
/// growing shares of the budget in turn.
///
/// The first complete answer counts. If the loop bound cuts off runs of the encoding, the search has one turn before, since
/// its reductions may cover all lengths of a loop.
pub(crate) fn decide_in_turns(
    search: &dyn Fn(&BudgetTracker<'_>) -> Result<Findings, PredictError>,
    encode: &dyn Fn(&BudgetTracker<'_>) -> Result<Option<Findings>, PredictError>,
    events: usize,
    tracker: &BudgetTracker<'_>,
) -> Result<Findings, PredictError> {
    let mut turns =
        ENCODING_STEPS.into_iter().zip(SEARCH_STEPS).chain(std::iter::repeat((u64::MAX, u64::MAX)));
    let mut partial = Findings { unlisted: true, timed_out: true, ..Findings::default() };
    let mut bounded: Option<Findings> = None;
    let (mut is_searchable, mut is_encodable) = (true, true);
    let mut is_first_turn = true;
    loop {
        let (encoding_steps, search_steps) = turns.next().unwrap_or((u64::MAX, u64::MAX));
        if is_encodable && (!is_first_turn || ENCODED_FIRST.contains(&events)) {
            let steps = if is_searchable { encoding_steps } else { u64::MAX };
            let limit = tracker.remaining().with_step_limit(steps);
            let encoding_tracker = BudgetTracker::new(limit);
            let decided = encode(&encoding_tracker)?;
            tracker.spend(encoding_tracker.spent_steps() / SOLVER_STEPS_PER_STEP);
            match decided {
                Some(found) if !found.timed_out => match is_first_turn && !found.is_unbounded() {
                    true => bounded = Some(found),
                    false => return Ok(found),
                },
                Some(found) => partial.add_definite(&found),
                // The search gives the reason if it cannot decide the test either.
                None => (is_encodable, is_searchable) = (false, true),
            }
        }
        is_first_turn = false;
        if tracker.is_exhausted() {
            return Ok(bounded.unwrap_or(partial));
        }
        if is_searchable {
            let steps = if is_encodable { search_steps } else { u64::MAX };
            match tracker.attempt(steps, search) {
                Ok(found) if !found.timed_out => return Ok(found),
                Ok(mut found) => {
                    found.add_definite(&partial);
                    partial = found;
                }
                Err(PredictError::TooManyPaths { .. }) if is_encodable => is_searchable = false,
                Err(error) => return Err(error),
            }
        }
        if let Some(bounded) = bounded.take() {
            return Ok(bounded);
        }
        if tracker.is_exhausted() {
            return Ok(partial);
        }
    }
}

/// The answers of the encoding of a whole program.
#[cfg(feature = "testing")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedAnswer {
    pub race: Race,
    /// True if an outcome meets the condition.
    pub can_meet_condition: bool,
    /// True if an outcome misses it.
    pub can_miss_condition: bool,
    /// True if the loop bound ends some run.
    pub is_cut: bool,
}

/// Decides a test by the encoding of the whole program; `None` if that does not support the test, or not in time.
///
/// # Errors
///
/// As for [`predict`](crate::predict).
#[cfg(feature = "testing")]
pub fn decide_by_encoding(
    test: &Test,
    model: &Model,
    unroll: u32,
    budget: Budget<'_>,
) -> Result<Option<EncodedAnswer>, PredictError> {
    let tracker = BudgetTracker::new(budget);
    let compiled = model.model_plans_for(test)?;
    let observables = test.observables();
    let bounded = BoundedTest::new(test, model, &compiled, &observables, unroll.max(1));
    let found = decide_program(bounded, &tracker)?;
    Ok(found.filter(|found| !found.timed_out).map(|found| EncodedAnswer {
        race: found.race(),
        can_meet_condition: found.has_match,
        can_miss_condition: found.has_mismatch,
        is_cut: found.truncated_combinations > 0,
    }))
}

/// Assumptions that restrict executions which differ by swaps of threads to one.
struct Symmetry {
    /// For answers that no swap changes.
    all: Bit,
    /// For the condition: only the swaps that preserve it.
    of_condition: Bit,
}

impl Symmetry {
    /// Requires under each assumption that of two threads that may be swapped the first one writes first.
    fn new<M: Matrix>(
        swaps: &[ThreadSwap],
        program: &GuardedProgram,
        encoding: &mut GuardedEncoding<'_, M>,
    ) -> Symmetry {
        let events = &program.skeleton.events;
        let writes_of = |thread: usize| -> Vec<usize> {
            let owner = Owner::Thread(ThreadId(thread as u16));
            let is_certain_write = |event: &usize| {
                let data = &events[*event];
                data.owner == owner && data.tags.has(Tags::W) && program.executes[*event] == Bit::TRUE
            };
            (0..events.len()).filter(is_certain_write).collect()
        };
        let mut symmetry = Symmetry { all: Bit::TRUE, of_condition: Bit::TRUE };
        for ThreadSwap { threads: [earlier, later], preserves_condition } in swaps {
            // The two threads have the same code, so their writes correspond. Only writes to one storage have an order.
            // An RMW is preferred, since each RMW of a chain reads from its predecessor.
            let mut pairs: Vec<(usize, usize)> =
                writes_of(*earlier).into_iter().zip(writes_of(*later)).collect();
            pairs.retain(|(first, second)| {
                events[*first].storage.is_some() && events[*first].storage == events[*second].storage
            });
            let rmw = pairs.iter().find(|(write, _)| events[*write].tags.has(Tags::RMW));
            let Some((first, second)) = rmw.or(pairs.first()) else { continue };
            let ordered = encoding.co_bit(*first, *second);
            let assumptions = [(&mut symmetry.all, true), (&mut symmetry.of_condition, *preserves_condition)];
            for (assumption, _) in assumptions.into_iter().filter(|(_, applies)| *applies) {
                if *assumption == Bit::TRUE {
                    *assumption = encoding.solver.circuit.input();
                }
                encoding.solver.require_any(&[!*assumption, ordered]);
            }
        }
        symmetry
    }
}

/// Answers all questions about the program; `None` if an answer needs values out of thin air.
fn find_answers<M: Matrix>(
    test: &Test,
    observables: &[Observable],
    program: &GuardedProgram,
    prepared: &PreparedPlan,
    swaps: &[ThreadSwap],
    mut encoding: GuardedEncoding<'_, M>,
) -> Option<Findings> {
    let Symmetry { all, of_condition } = Symmetry::new(swaps, program, &mut encoding);
    let mut findings = Findings { unlisted: true, ..Findings::default() };
    let resolved = |condition| ResolvedCondition::new(test, observables, condition);
    let filter = test.filter.as_ref().map_or(Bit::TRUE, |filter| encoding.condition_bit(&resolved(filter)));
    let mut timed_out = false;
    let mut is_possible = |encoding: &mut GuardedEncoding<'_, M>, goal: &[Bit]| {
        let found = encoding.find_execution(goal);
        timed_out |= found == Some(None);
        Some(found?.unwrap_or(false))
    };
    if is_possible(&mut encoding, &[all])? {
        findings.path_combinations = 1;
        for (axiom, raised) in encoding.flags.clone() {
            let mut flags = Flags::default();
            flags.raise_axiom(&prepared.plan.axioms[axiom]);
            if findings.raised.lacks_any_of(flags) && is_possible(&mut encoding, &[all, filter, raised])? {
                findings.raise_flags(flags, false);
            }
        }
        if let Some(question) = &test.question {
            let holds = encoding.condition_bit(&resolved(&question.condition));
            let ended = program.ended;
            findings.has_match = is_possible(&mut encoding, &[of_condition, ended, filter, holds])?;
            findings.has_mismatch = is_possible(&mut encoding, &[of_condition, ended, filter, !holds])?;
        } else {
            let holds = is_possible(&mut encoding, &[all, program.ended, filter])?;
            findings.has_match = holds;
        }
        if is_possible(&mut encoding, &[all, program.cut])? {
            findings.truncated_combinations = 1;
        }
    }
    findings.timed_out = timed_out;
    Some(findings)
}
