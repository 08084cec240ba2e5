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
//! of a node matters. Others have a bit for paths of 1, 2, 4, … steps, and fixpoints one for each of their iterations.
//! Races, the question, the loop bound and each listed outcome are assumptions on one incremental solver. Dependencies
//! by address, control and data have a bit for each pair too. What is not supported here, such as subgroup operations
//! and conditional control barriers, is left to the search. So are answers that need values out of thin air.

mod coherence;
mod encoding;
mod execution;
mod finals;
mod orders;
mod program;

use std::rc::Rc;

#[cfg(feature = "testing")]
use litmus::Race;
#[cfg(feature = "testing")]
use litmus::Test;
use litmus::{Condition, LocationId, Outcome, ResolvedCondition, ThreadId, Value};
#[cfg(feature = "testing")]
use solver::Budget;
use solver::{Bit, BitVector, BudgetTracker, CircuitSolver};

use self::encoding::GuardedEncoding;
use self::program::GuardedProgram;
#[cfg(feature = "testing")]
use crate::Model;
use crate::PredictError;
use crate::bounded_test::BoundedTest;
use crate::candidate::CandidateExecution;
use crate::flags::Flags;
use crate::matrix::{Matrix, with_smallest_matrix};
use crate::outcome_collector::{Findings, MAX_LISTED_OUTCOMES, OutcomeStatus, OutcomeTable};
use crate::path::unroll::{PossibleValues, ValueSet, to_constant};
use crate::prepared::PreparedPlan;
use crate::quick::QuickMap;
use crate::search::step_weight;
use crate::skeleton::{Owner, Skeleton, Tags};
use crate::symmetry::{ThreadSwap, find_swaps};

/// Rounds of the analysis of possible values before sets that still grow have all of them.
const MAX_EXACT_ROUNDS: usize = 20;

/// Decides races and the question of a test; `None` if that is not possible here.
///
/// With a table, its outcomes are decided too, or all outcomes are added if it is not fixed. A search that was cut short
/// has the findings so far.
pub(crate) fn decide_program(
    bounded: BoundedTest<'_>,
    outcomes: Option<OutcomeTable>,
    tracker: &BudgetTracker<'_>,
) -> Result<Option<Findings>, PredictError> {
    let mut findings = Findings { unlisted: outcomes.is_none(), ..Findings::default() };
    findings.outcomes = outcomes.unwrap_or_default();
    let Some((program, prepared, solver)) = prepare_program(bounded, tracker)? else { return Ok(None) };
    with_smallest_matrix!(program.skeleton.len(), M => {
        match GuardedEncoding::<M>::new(program.clone(), &prepared, solver, false)? {
            Some(encoding) => Ok(find_answers(bounded, &program, &prepared, encoding, findings)),
            None => Ok(None),
        }
    })
}

/// Returns the guarded program of a test, its plan and its solver; `None` if it is not supported.
fn prepare_program<'t>(
    bounded: BoundedTest<'_>,
    tracker: &'t BudgetTracker<'t>,
) -> Result<Option<(Rc<GuardedProgram>, PreparedPlan, CircuitSolver<'t>)>, PredictError> {
    if tracker.is_exhausted() {
        return Ok(None);
    }
    let Some((program, solver)) = fit_values(bounded, tracker)? else { return Ok(None) };
    // Runs that do not end have no final values of memory, which a filter may name.
    if bounded.test.filter.is_some() && program.ended != Bit::TRUE {
        return Ok(None);
    }
    let prepared = bounded.compiled.prepare_plan(&program.skeleton).with_missing_events();
    Ok(Some((Rc::new(program), prepared, solver)))
}

/// An execution to find.
pub(crate) struct ExecutionGoal<'g> {
    /// The condition of its outcome. Without one, its threads need not end.
    pub(crate) condition: Option<&'g Condition>,
    /// The flags of which it raises one, if any.
    pub(crate) raises: Option<&'g dyn Fn(&Flags) -> bool>,
    /// True for an execution that may violate axioms.
    pub(crate) is_inconsistent: bool,
}

/// Executions with their event structures.
pub(crate) type FoundExecutions = Vec<(Skeleton, CandidateExecution)>;

/// Finds executions that reach a goal; `None` if that is not possible here. Of inconsistent ones, one may violate any
/// axioms, and others violate one alone.
pub(crate) fn find_executions(
    mut bounded: BoundedTest<'_>,
    goal: &ExecutionGoal<'_>,
    tracker: &BudgetTracker<'_>,
) -> Result<Option<FoundExecutions>, PredictError> {
    // What is proved of the shipped models follows from their axioms.
    bounded.semantic.is_shipped_vulkan &= !goal.is_inconsistent;
    let Some((program, prepared, solver)) = prepare_program(bounded, tracker)? else { return Ok(None) };
    with_smallest_matrix!(program.skeleton.len(), M => {
        match GuardedEncoding::<M>::new(program.clone(), &prepared, solver, goal.is_inconsistent)? {
            Some(encoding) => Ok(search_executions(bounded, goal, &prepared, encoding)),
            None => Ok(None),
        }
    })
}

/// Finds executions that reach a goal; `None` if some need values out of thin air or the budget ends.
fn search_executions<M: Matrix>(
    bounded: BoundedTest<'_>,
    goal: &ExecutionGoal<'_>,
    prepared: &PreparedPlan,
    mut encoding: GuardedEncoding<'_, M>,
) -> Option<FoundExecutions> {
    let BoundedTest { test, observables, .. } = bounded;
    let mut wanted = Vec::new();
    for condition in [test.filter.as_ref(), goal.condition].into_iter().flatten() {
        wanted.push(encoding.condition_bit(&ResolvedCondition::new(test, observables, condition)));
    }
    if goal.condition.is_some() {
        wanted.push(encoding.program.ended);
    }
    if let Some(raises) = goal.raises {
        let mut raised = Vec::new();
        for (axiom, bit) in &encoding.flags {
            let mut flags = Flags::default();
            flags.raise_axiom(&prepared.plan.axioms[*axiom]);
            raised.extend(raises(&flags).then_some(*bit));
        }
        wanted.push(encoding.solver.circuit.any(&raised));
    }
    let Some(axioms) = encoding.assumed_axioms.clone() else {
        let is_found = encoding.find_execution(&wanted)??;
        return Some(is_found.then(|| encoding.describe_solution()).into_iter().collect());
    };
    if !encoding.find_execution(&wanted)?? {
        return Some(Vec::new());
    }
    let mut found = vec![encoding.describe_solution()];
    // A violation between threads explains more than one of the order of a thread's own writes.
    let mut coherent = wanted.clone();
    coherent.extend(encoding.program_order_of_writes());
    if encoding.find_execution(&coherent) == Some(Some(true)) {
        found = vec![encoding.describe_solution()];
        wanted = coherent;
    }
    for violated in 0..axioms.len() {
        let others = axioms.iter().enumerate().filter(|(axiom, _)| *axiom != violated);
        let goal: Vec<Bit> = wanted.iter().copied().chain(others.map(|(_, holds)| *holds)).collect();
        match encoding.find_execution(&goal) {
            Some(Some(true)) => found.push(encoding.describe_solution()),
            Some(Some(false)) | None => {}
            Some(None) => break,
        }
    }
    Some(found)
}

/// Builds a program whose reads return all values that its writes may store, and few more.
///
/// The values flow from writes to reads until nothing changes. Only a value that depends on itself may come from
/// elsewhere, and such a read returns any value.
fn fit_values<'t>(
    bounded: BoundedTest<'_>,
    tracker: &'t BudgetTracker<'t>,
) -> Result<Option<(GuardedProgram, CircuitSolver<'t>)>, PredictError> {
    let initial = |index| ValueSet::Few([bounded.test.initial_value(LocationId(index as u16), 0).0].into());
    let sets = (0..bounded.test.locations.len()).map(initial).collect();
    let mut possible = PossibleValues { sets, ignores_branches: true };
    for round in 0.. {
        let mut solver = CircuitSolver::new(tracker);
        let Some(program) = GuardedProgram::new(bounded, &possible, &mut solver.circuit)? else {
            return Ok(None);
        };
        if !possible.ignores_branches {
            return Ok(Some((program, solver)));
        }
        possible.ignores_branches = program.grow_values(&mut possible, round >= MAX_EXACT_ROUNDS);
    }
    Ok(None)
}

/// Steps of the first attempt with the encoding of all paths, and of the search path by path that follows it.
const FIRST_ENCODING_STEPS: u64 = 100_000;
const FIRST_SEARCH_STEPS: u64 = 20_000;

/// Steps of the solver that take about as long as one step of a search.
const SOLVER_STEPS_PER_STEP: u64 = 64;

/// Number of events from which the encoding is the first attempt: smaller tests are searched at once.
const ENCODED_FIRST: usize = 24;

/// Decides a test of about this number of events by the encoding of all paths and by the search path by path, which get
/// a small and then a large share of the budget in turn.
///
/// The first complete answer counts. If the loop bound cuts off runs of the encoding, the search has one turn before, since
/// its reductions may cover all lengths of a loop.
pub(crate) fn decide_in_turns(
    search: &dyn Fn(&BudgetTracker<'_>) -> Result<Findings, PredictError>,
    encode: &dyn Fn(&BudgetTracker<'_>) -> Result<Option<Findings>, PredictError>,
    events: usize,
    tracker: &BudgetTracker<'_>,
) -> Result<Findings, PredictError> {
    let mut partial = Findings { unlisted: true, timed_out: true, ..Findings::default() };
    // The search for at most these steps of a small test; the encoding needs no list of paths.
    let search_for = |steps: u64| match tracker.attempt(steps / step_weight(events), search) {
        Err(PredictError::TooManyPaths { .. }) => {
            Ok(Findings { unlisted: true, timed_out: true, ..Findings::default() })
        }
        found => found,
    };
    if events < ENCODED_FIRST {
        let found = search_for(FIRST_SEARCH_STEPS)?;
        if !found.timed_out {
            return Ok(found);
        }
        partial.add_definite(&found);
    }
    for (encoding_steps, search_steps) in [(FIRST_ENCODING_STEPS, FIRST_SEARCH_STEPS), (u64::MAX, u64::MAX)] {
        let encoding_tracker = BudgetTracker::new(tracker.remaining().with_step_limit(encoding_steps));
        let encoded = encode(&encoding_tracker)?;
        tracker.spend(encoding_tracker.spent_steps() / SOLVER_STEPS_PER_STEP);
        let Some(encoded) = encoded else {
            if tracker.is_exhausted() {
                break;
            }
            // The search gives the reason if it cannot decide the test either.
            let mut found = search(tracker)?;
            found.add_definite(&partial);
            return Ok(found);
        };
        if encoded.is_unbounded() {
            return Ok(encoded);
        }
        partial.add_definite(&encoded);
        if tracker.is_exhausted() && encoded.timed_out {
            break;
        }
        let found = search_for(search_steps)?;
        if !found.timed_out {
            return Ok(found);
        }
        partial.add_definite(&found);
        if !encoded.timed_out {
            return Ok(encoded);
        }
    }
    Ok(partial)
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
    let found = decide_program(bounded, None, &tracker)?;
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
    /// Requires under each assumption that of two threads that may be swapped the first one writes first, and that it
    /// writes if the other does.
    ///
    /// Swaps of neighbours sort the threads by that order, and leave the writes of others in place.
    fn new<M: Matrix>(
        swaps: &[ThreadSwap],
        program: &GuardedProgram,
        encoding: &mut GuardedEncoding<'_, M>,
    ) -> Symmetry {
        let events = &program.skeleton.events;
        let writes_of = |thread: usize| -> Vec<usize> {
            let owner = Owner::Thread(ThreadId(thread as u16));
            (0..events.len()).filter(|e| events[*e].owner == owner && events[*e].tags.has(Tags::W)).collect()
        };
        let is_certain = |event: usize| program.executes[event] == Bit::TRUE;
        let mut symmetry = Symmetry { all: Bit::TRUE, of_condition: Bit::TRUE };
        let mut compared: QuickMap<usize, usize> = QuickMap::default();
        for ThreadSwap { threads: [earlier, later], preserves_condition, is_renaming } in swaps {
            // The two threads have the same code, so their writes correspond. Only writes to one storage have an order.
            // An RMW is preferred, since each RMW of a chain reads from its predecessor.
            let (writes, later_writes) = (writes_of(*earlier), writes_of(*later));
            if writes.len() != later_writes.len() {
                continue;
            }
            let comparable = writes.into_iter().zip(later_writes).filter(|(first, second)| {
                events[*first].storage.is_some()
                    && events[*first].storage == events[*second].storage
                    && (!is_renaming || is_certain(*first) && is_certain(*second))
                    && compared.get(earlier).is_none_or(|write| write == first)
            });
            let preferred = comparable.max_by_key(|(write, _)| {
                (is_certain(*write), events[*write].tags.has(Tags::RMW), std::cmp::Reverse(*write))
            });
            let Some((first, second)) = preferred else { continue };
            compared.extend([(*earlier, first), (*later, second)]);
            let ordered = encoding.co_bit(first, second);
            let assumptions = [(&mut symmetry.all, true), (&mut symmetry.of_condition, *preserves_condition)];
            for (assumption, _) in assumptions.into_iter().filter(|(_, applies)| *applies) {
                if *assumption == Bit::TRUE {
                    *assumption = encoding.solver.circuit.input();
                }
                for requirement in [ordered, program.executes[first]] {
                    encoding.solver.require_any(&[!*assumption, !program.executes[second], requirement]);
                }
            }
        }
        symmetry
    }
}

/// Answers all questions about the program; `None` if an answer needs values out of thin air.
fn find_answers<M: Matrix>(
    bounded: BoundedTest<'_>,
    program: &GuardedProgram,
    prepared: &PreparedPlan,
    mut encoding: GuardedEncoding<'_, M>,
    mut findings: Findings,
) -> Option<Findings> {
    let BoundedTest { test, observables, semantic, .. } = bounded;
    if findings.outcomes.is_fixed {
        return decide_outcomes(program, &mut encoding, &mut findings).map(|()| findings);
    }
    let Symmetry { all, of_condition } = Symmetry::new(&find_swaps(test, semantic), program, &mut encoding);
    let mut condition_bit = |condition: Option<&Condition>| match condition {
        Some(condition) => encoding.condition_bit(&ResolvedCondition::new(test, observables, condition)),
        None => Bit::TRUE,
    };
    let filter = condition_bit(test.filter.as_ref());
    let holds = condition_bit(test.question.as_ref().map(|question| &question.condition));
    // Each execution that is found answers the question too.
    let is_possible = |encoding: &mut GuardedEncoding<'_, M>, findings: &mut Findings, goal: &[Bit]| {
        let found = encoding.find_execution(goal)?;
        if found == Some(true) {
            let assignment = encoding.solver.assignment();
            let is_answer = assignment.bit(program.ended) && assignment.bit(filter);
            findings.has_match |= is_answer && assignment.bit(holds);
            findings.has_mismatch |= is_answer && !assignment.bit(holds);
        }
        findings.timed_out |= found.is_none();
        Some(found == Some(true))
    };
    if is_possible(&mut encoding, &mut findings, &[all])? {
        findings.path_combinations = 1;
        for (axiom, raised) in encoding.flags.clone() {
            let mut flags = Flags::default();
            flags.raise_axiom(&prepared.plan.axioms[axiom]);
            if findings.raised.lacks_any_of(flags)
                && is_possible(&mut encoding, &mut findings, &[all, filter, raised])?
            {
                findings.raise_flags(flags, false);
            }
        }
        if !findings.has_match {
            is_possible(&mut encoding, &mut findings, &[of_condition, program.ended, filter, holds])?;
        }
        if !findings.has_mismatch {
            is_possible(&mut encoding, &mut findings, &[of_condition, program.ended, filter, !holds])?;
        }
        if is_possible(&mut encoding, &mut findings, &[all, program.cut])? {
            findings.truncated_combinations = 1;
        }
        if !findings.unlisted {
            list_outcomes(program, &mut encoding, &mut findings)?;
        }
    }
    Some(findings)
}

/// Adds the outcomes of all executions, each by one call of the solver; `None` if some need values out of thin air.
///
/// If the budget ends, or they are too many, they count as not listed.
fn list_outcomes<M: Matrix>(
    program: &GuardedProgram,
    encoding: &mut GuardedEncoding<'_, M>,
    findings: &mut Findings,
) -> Option<()> {
    // The blocking clauses hold under an assumption, which later queries do not make.
    let blocking = encoding.solver.circuit.input();
    let finals: Vec<BitVector> = encoding.final_values().collect();
    while findings.outcomes.allowed_count() < MAX_LISTED_OUTCOMES {
        match encoding.find_execution(&[program.ended, blocking])? {
            Some(false) => return Some(()),
            None => break,
            Some(true) => {}
        }
        let assignment = encoding.solver.assignment();
        let values: Vec<Value> = finals.iter().map(|value| Value(assignment.number(value) as u64)).collect();
        let mut clause = vec![!blocking];
        for (value, number) in finals.iter().zip(&values) {
            clause.push(!encoding.solver.circuit.equals(value, &to_constant(*number)));
        }
        encoding.solver.require_any(&clause);
        findings.outcomes.record_allowed(Outcome(values), false);
    }
    findings.unlisted = true;
    Some(())
}

/// Finds the allowed ones of the given outcomes; `None` if some need values out of thin air.
fn decide_outcomes<M: Matrix>(
    program: &GuardedProgram,
    encoding: &mut GuardedEncoding<'_, M>,
    findings: &mut Findings,
) -> Option<()> {
    let open = findings.outcomes.iter().filter(|(_, status)| *status != OutcomeStatus::Allowed);
    let open: Vec<Outcome> = open.map(|(outcome, _)| outcome.clone()).collect();
    findings.truncated_combinations = u64::from(encoding.find_execution(&[program.cut])? != Some(false));
    for outcome in open {
        let mut goal = vec![program.ended];
        for (value, wanted) in encoding.final_values().collect::<Vec<_>>().iter().zip(&outcome.0) {
            goal.push(encoding.solver.circuit.equals(value, &to_constant(*wanted)));
        }
        match encoding.find_execution(&goal)? {
            Some(true) => findings.outcomes.record_allowed(outcome, false),
            Some(false) => {}
            None => {
                findings.timed_out = true;
                break;
            }
        }
    }
    Some(())
}
