//! Conversion of tests between syntaxes, and of `.test` files into programs that a device can run.

use thiserror::Error;

use crate::comparison::Comparison;
use crate::condition::{Condition, QuestionKind, Term};
use crate::hsa::{LoweringError, lower_to_vulkan};
use crate::khronos::{Khronos, NO_VALUE, QueryKind, QueryTerm, SatisfiabilityLine};
use crate::metadata::{Expectation, Metadata, Reachability};
use crate::outcome::Race;
use crate::span::Span;
use crate::syntax::khronos::{instruction_text, is_name};
use crate::test::{
    AccessKind, ControlBarrier, Dialect, Flow, Instruction, InstructionKind, Label, LabelId, Location,
    LocationId, LocationInit, MemoryAccess, Operand, Placement, RegisterId, RmwOperation, Scope, SyncPoint,
    SystemSync, Test, Thread, ThreadId, ThreadPlace,
};

/// The reason why a test has no form in another syntax.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum ConvertError {
    /// The syntax cannot express something.
    #[error("{syntax} cannot express {what}")]
    NotExpressible {
        syntax: &'static str,
        /// The feature that it cannot express.
        what: String,
    },
    /// A value does not identify the one write that its read must read from.
    #[error(
        "value {value} of `{location}` does not identify the write that is read: exactly one write \
         must have it"
    )]
    AmbiguousValue { value: i64, location: String },
    /// An HSA test has no Vulkan program.
    #[error("line {}: {error}", .error.span().line)]
    Lowering { error: LoweringError },
}

/// A read of a program without control flow.
struct RegisterRead {
    thread: usize,
    instruction: usize,
    register: RegisterId,
    location: LocationId,
}

fn loaded_register(kind: &InstructionKind) -> Option<(RegisterId, LocationId)> {
    let access = kind.access()?;
    Some((access.destinations().next()?, access.place.location))
}

fn stored_constant(kind: &InstructionKind) -> Option<(LocationId, Option<i64>)> {
    let constant = |operand: &Operand| match operand {
        Operand::Constant(constant) => Some(*constant),
        Operand::Register(_) => None,
    };
    let access = kind.access()?;
    let value = match &access.kind {
        AccessKind::Store(values) => constant(&values.first()),
        AccessKind::Rmw { operation: RmwOperation::Exchange(value), .. } => constant(value),
        AccessKind::Rmw { .. } => None,
        AccessKind::Load(_) | AccessKind::Await { .. } => return None,
    };
    Some((access.place.location, value))
}

fn register_reads(test: &Test) -> impl Iterator<Item = RegisterRead> + '_ {
    test.threads.iter().enumerate().flat_map(|(thread, code)| {
        code.instructions.iter().enumerate().filter_map(move |(instruction, i)| {
            let (register, location) = loaded_register(&i.kind)?;
            Some(RegisterRead { thread, instruction, register, location })
        })
    })
}

/// Returns the number of sources of a read of `value` through `location`: through the same name, and through
/// others.
fn count_sources(test: &Test, location: LocationId, value: i64) -> (usize, usize) {
    let (mut same_name, mut other_names) = (usize::from(value == 0), 0_usize);
    let kinds = test.threads.iter().flat_map(|thread| &thread.instructions).map(|i| &i.kind);
    for (name, _) in kinds.filter_map(stored_constant).filter(|(_, stored)| *stored == Some(value)) {
        if name == location {
            same_name += 1;
        } else if test.storage_of(name) == test.storage_of(location) {
            other_names += 1;
        }
    }
    (same_name, other_names)
}

/// Returns the program of a `.test` file with its forced values as guards; other tests stay unchanged.
///
/// The code after a read with a forced value runs only if the read returned that value. A device can execute
/// this form.
pub fn guard_forced_reads(test: &Test) -> Test {
    let Some(khronos) = &test.khronos else { return test.clone() };
    let metadata = Metadata::default();
    let mut program = Test { dialect: Dialect::Vulkan, khronos: None, metadata, ..test.clone() };
    for (index, thread) in program.threads.iter_mut().enumerate() {
        thread.number = index as u32;
        let last = thread.instructions.len();
        let mut instructions = Vec::new();
        for (position, instruction) in std::mem::take(&mut thread.instructions).into_iter().enumerate() {
            let read = loaded_register(&instruction.kind);
            let span = instruction.span;
            instructions.push(instruction);
            let value = khronos.read_value(index, position);
            let forced = read.filter(|(_, location)| count_sources(test, *location, value).0 > 0);
            if let Some((register, _)) = forced.filter(|_| position + 1 < last) {
                let kind = InstructionKind::Flow(Flow::Branch {
                    relation: Comparison::NotEqual,
                    left: Operand::Register(register),
                    right: Operand::Constant(value),
                    target: LabelId(0),
                });
                instructions.push(Instruction { kind, span });
                if thread.labels.is_empty() {
                    thread.labels.push(Label { name: "LC00".to_owned() });
                }
            }
        }
        if !thread.labels.is_empty() {
            instructions.push(Instruction {
                kind: InstructionKind::Flow(Flow::Label(LabelId(0))),
                span: thread.span,
            });
        }
        thread.instructions = instructions;
    }
    program
}

/// Returns the program that a device runs for a test.
///
/// This is the guarded program of a `.test` file, the lowered program of an HSA test, and any other test
/// unchanged.
///
/// # Errors
///
/// If an HSA test has no Vulkan program.
pub fn to_device_program(test: &Test) -> Result<Test, LoweringError> {
    match test.dialect {
        Dialect::Hsa => Ok(lower_to_vulkan(test)?.test),
        Dialect::Khronos | Dialect::Vulkan => Ok(guard_forced_reads(test)),
    }
}

/// Converts a test to the native dialect.
///
/// An HSA test is lowered. Forced values of a `.test` file become a `filter`, its queries header lines.
///
/// # Errors
///
/// If a filter over values would select other executions than the file, or an HSA test has no Vulkan program.
pub fn to_vulkan(test: &Test) -> Result<Test, ConvertError> {
    if test.dialect == Dialect::Hsa {
        return lower_to_vulkan(test)
            .map(|lowered| lowered.test)
            .map_err(|error| ConvertError::Lowering { error });
    }
    let Some(khronos) = &test.khronos else { return Ok(test.clone()) };
    let mut converted = Test { dialect: Dialect::Vulkan, khronos: None, ..test.clone() };
    for (index, thread) in converted.threads.iter_mut().enumerate() {
        thread.number = index as u32;
    }
    for read in register_reads(test) {
        let value = khronos.read_value(read.thread, read.instruction);
        let location = test.location(read.location).name.clone();
        match count_sources(test, read.location, value) {
            (0, _) => {}
            (1, 0) => {
                let compare = Condition::Compare {
                    left: Term::Register(ThreadId(read.thread as u16), read.register),
                    comparison: Comparison::Equal,
                    right: Term::Constant(value),
                };
                converted.filter = Some(match converted.filter.take() {
                    Some(filter) => Condition::And(Box::new(filter), Box::new(compare)),
                    None => compare,
                });
            }
            _ => return Err(ConvertError::AmbiguousValue { value, location }),
        }
    }
    let heading = test.metadata.comments.iter().chain(khronos.queries.iter().map(|query| &query.text));
    let comments =
        heading.map(|line| line.replace(['{', '}', '"'], " ").replace("(*", "( *").replace(": ", " - "));
    let comments = comments.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    converted.metadata = Metadata { comments, ..Metadata::default() };
    match crate::parse(&crate::print(&converted), "converted.litmus") {
        Ok(again) if again.threads == converted.threads && again.locations.len() == test.locations.len() => {
            Ok(converted)
        }
        _ => Err(not_expressible("the native dialect", "the names of this test")),
    }
}

fn not_expressible(syntax: &'static str, what: &str) -> ConvertError {
    ConvertError::NotExpressible { syntax, what: what.to_owned() }
}

/// Converts a test to Khronos' `.test` format.
///
/// The test must have one queue, store and read constants, and have a condition that states the value of
/// every read. Its claim (`expect:` of `khronos-alloy`, else of `vulkan`) becomes query lines: `SATISFIABLE
/// consistent[X]` if allowed, also `NOSOLUTION consistent[X] && #dr>0` if race-free; `NOSOLUTION
/// consistent[X]` if forbidden. Without a claim, `exists` counts as allowed and `~exists` as forbidden.
///
/// # Errors
///
/// If the format cannot express something in the test, or its values would have another meaning there.
pub fn to_khronos(test: &Test) -> Result<Test, ConvertError> {
    let no = |what: &str| not_expressible("Khronos' format", what);
    if test.khronos.is_some() {
        return Ok(test.clone());
    }
    if test.dialect == Dialect::Hsa {
        return to_khronos(&to_vulkan(test)?);
    }
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    if instructions.into_iter().any(|i| i.kind.access().is_some_and(MemoryAccess::is_vector)) {
        return Err(no("accesses of vectors"));
    }
    let mut wanted: Vec<(ThreadId, RegisterId, i64)> = Vec::new();
    let conditions = test.filter.iter().chain(test.question.as_ref().map(|question| &question.condition));
    for condition in conditions {
        collect_conjuncts(condition, &mut wanted)
            .ok_or_else(|| no("a condition other than registers that equal numbers"))?;
    }
    if !test.listed_terms.is_empty() {
        return Err(no("a list of locations"));
    }
    check_locations(&test.locations).map_err(no)?;
    let mut values: Vec<Vec<Option<i64>>> =
        test.threads.iter().map(|thread| vec![None; thread.instructions.len()]).collect();
    for (thread, register, value) in wanted {
        let read = register_reads(test)
            .filter(|read| read.thread == usize::from(thread.0) && read.register == register)
            .last()
            .ok_or_else(|| no("a condition on a register without a read"))?;
        let slot = &mut values[read.thread][read.instruction];
        let ambiguous =
            slot.is_some_and(|other| other != value) || count_sources(test, read.location, value) != (1, 0);
        if ambiguous || value == NO_VALUE {
            let location = test.location(read.location).name.clone();
            return Err(ConvertError::AmbiguousValue { value, location });
        }
        *slot = Some(value);
    }
    let kinds = test.threads.iter().flat_map(|thread| &thread.instructions).map(|i| &i.kind);
    if kinds.filter_map(stored_constant).any(|(_, stored)| stored == Some(NO_VALUE)) {
        return Err(no("a store of -1, which is reserved"));
    }
    let mut converted = Test { dialect: Dialect::Khronos, filter: None, question: None, ..test.clone() };
    let order = group_threads(&mut converted, test).map_err(no)?;
    let mut khronos = Khronos::default();
    for index in &order {
        khronos.read_values.push(values.get(*index).cloned().unwrap_or_default());
    }
    let claim = claimed_expectation(&test.metadata);
    let kind = match (test.question.as_ref().map(|question| question.kind), claim) {
        (Some(QuestionKind::Forall), _) => return Err(no("`forall`")),
        (None, _) => None,
        (Some(_), Some(Expectation { reachability: Reachability::Allowed, .. })) => {
            Some(QueryKind::Satisfiable)
        }
        (Some(_), Some(Expectation { reachability: Reachability::Forbidden, .. })) => {
            Some(QueryKind::NoSolution)
        }
        (Some(QuestionKind::Exists | QuestionKind::Final), None) => Some(QueryKind::Satisfiable),
        (Some(QuestionKind::NotExists), None) => Some(QueryKind::NoSolution),
    };
    khronos
        .queries
        .extend(kind.map(|kind| SatisfiabilityLine::new(kind, false, vec![QueryTerm::Consistent])));
    if kind == Some(QueryKind::Satisfiable) && claim.is_some_and(|claim| claim.race == Some(Race::Free)) {
        let racing = vec![QueryTerm::Consistent, QueryTerm::Races(Comparison::Greater, 0)];
        khronos.queries.push(SatisfiabilityLine::new(QueryKind::NoSolution, false, racing));
    }
    for (index, thread) in converted.threads.iter().enumerate() {
        for (position, instruction) in thread.instructions.iter().enumerate() {
            let read = khronos.read_value(index, position);
            if instruction_text(&converted, &instruction.kind, read).is_none() {
                return Err(no(&format!(
                    "`{}`",
                    instruction.kind.to_text(&converted, ThreadId(index as u16))
                )));
            }
        }
    }
    let header = std::mem::take(&mut converted.metadata);
    converted.metadata.comments = header.comments.iter().map(|line| format!(" {line}")).collect();
    converted.khronos = Some(khronos);
    let reparsed = crate::parse(&crate::print(&converted), "converted.test");
    reparsed.map_err(|errors| {
        let first = errors.messages().first().map(|message| message.text.clone());
        no(&first.unwrap_or_else(|| errors.to_string()))
    })?;
    Ok(converted)
}

/// Returns the claim for the model of the format's own tests, else for the specification's model.
fn claimed_expectation(metadata: &Metadata) -> Option<&Expectation> {
    let expectation_for = |model: &str| metadata.expectations.iter().find(|claim| claim.model == model);
    expectation_for("khronos-alloy").or_else(|| expectation_for("vulkan"))
}

/// Collects a conjunction of equalities of registers and numbers; `None` for another condition.
fn collect_conjuncts(condition: &Condition, conjuncts: &mut Vec<(ThreadId, RegisterId, i64)>) -> Option<()> {
    match condition {
        Condition::True => Some(()),
        Condition::And(left, right) => {
            collect_conjuncts(left, conjuncts)?;
            collect_conjuncts(right, conjuncts)
        }
        Condition::Compare {
            left: Term::Register(thread, register),
            comparison: Comparison::Equal,
            right: Term::Constant(value),
        } => {
            conjuncts.push((*thread, *register, *value));
            Some(())
        }
        _ => None,
    }
}

fn check_locations(locations: &[Location]) -> Result<(), &'static str> {
    for location in locations {
        if location.init == LocationInit::Undefined {
            return Err("an undefined initial value");
        }
        if !matches!(location.init, LocationInit::Constant(0) | LocationInit::AliasOf(_)) {
            return Err("an initial value other than 0");
        }
        if location.reference.is_some() || location.scalar.is_some() || location.host || location.noncoherent
        {
            return Err("the storage of a location");
        }
        if !is_name(&location.name) {
            return Err("the name of a location");
        }
    }
    Ok(())
}

/// Sorts the threads so that groups are contiguous, and renumbers them; returns the old indices in the new
/// order.
fn group_threads(converted: &mut Test, test: &Test) -> Result<Vec<usize>, &'static str> {
    let place = |thread: &Thread| match thread.place {
        ThreadPlace::Device(place) => Ok(place),
        ThreadPlace::Host => Err("a host thread"),
    };
    let mut order: Vec<(Placement, usize)> = Vec::new();
    for (index, thread) in test.threads.iter().enumerate() {
        order.push((place(thread)?, index));
    }
    order.sort_unstable();
    let mut threads: Vec<Thread> = Vec::new();
    let mut before: Option<(Placement, Placement)> = None;
    for (number, (old, index)) in order.iter().enumerate() {
        let new = match before {
            None => Placement { queue_family: 0, queue: 0, workgroup: 0, subgroup: 0 },
            Some((last, new)) if old.queue_family != last.queue_family => {
                Placement { queue_family: new.queue_family + 1, queue: 0, workgroup: 0, subgroup: 0 }
            }
            Some((last, new)) if old.workgroup != last.workgroup => {
                Placement { workgroup: new.workgroup + 1, subgroup: 0, ..new }
            }
            Some((last, new)) if old.subgroup != last.subgroup => {
                Placement { subgroup: new.subgroup + 1, ..new }
            }
            Some((_, new)) => new,
        };
        before = Some((*old, new));
        if let Some(thread) = test.threads.get(*index) {
            threads.push(Thread { number: number as u32, place: ThreadPlace::Device(new), ..thread.clone() });
        }
    }
    // In this dialect, barriers with one id synchronize anywhere; in the `.test` format only within one
    // workgroup.
    let barriers = threads.iter().flat_map(|thread| {
        thread.instructions.iter().filter_map(move |instruction| match &instruction.kind {
            InstructionKind::ControlBarrier(barrier) => Some((barrier, thread.place)),
            _ => None,
        })
    });
    for (barrier, place) in barriers.clone() {
        let is_separate = |(other, elsewhere): (&ControlBarrier, ThreadPlace)| {
            other.id == barrier.id && !place.shares_scope(elsewhere, Scope::Workgroup)
        };
        if barriers.clone().any(is_separate) {
            return Err("barriers of one id that do not synchronize");
        }
    }
    let new_index = |thread: ThreadId| {
        let place = order.iter().position(|(_, index)| *index == usize::from(thread.0));
        place
            .map(|place| ThreadId(place as u16))
            .ok_or("system synchronization of a thread that does not exist")
    };
    converted.system_sync = Vec::new();
    for sync in &test.system_sync {
        if sync.from.instruction.is_some() || sync.to.instruction.is_some() {
            return Err("system synchronization of single instructions");
        }
        let point = |thread| new_index(thread).map(|thread| SyncPoint { thread, instruction: None });
        converted.system_sync.push(SystemSync {
            from: point(sync.from.thread)?,
            to: point(sync.to.thread)?,
            span: Span::default(),
        });
    }
    converted.threads = threads;
    Ok(order.into_iter().map(|(_, index)| index).collect())
}
