//! Lowering of HSA tests to Vulkan programs.
//!
//! A work-item becomes an invocation, a wave a subgroup, a work-group a workgroup, an agent the device.
//! Release and acquire keep their ordering but lose the total order of synchronizing operations, since the
//! Vulkan memory model has no sequential consistency. So the lowered program allows at least the outcomes of
//! the original, and races at least where the original does. Whatever it forbids, a Vulkan device must
//! forbid.

#![deny(clippy::wildcard_enum_match_arm)]

mod awaits;
mod thread;

use thiserror::Error;

use crate::condition::{Condition, Question, Term};
use crate::metadata::Metadata;
use crate::outcome::{Observable, Outcome};
use crate::span::Span;
use crate::syntax::hsa::instruction_text;
use crate::syntax::is_native_location;
use crate::test::{
    Dialect, Instruction, InstructionKind, Location, Placement, Register, RegisterId, Scope, StorageClass,
    Test, Thread, ThreadId, ThreadPlace,
};
use thread::ThreadLowering;

/// Name of the model in the `expect:` lines about an HSA test itself. Lines for other models are about the
/// lowered test.
pub const MODEL: &str = "hsa";

/// The reason why an HSA test has no Vulkan program. Its [`Display`](std::fmt::Display) form is the name of
/// the rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum LoweringError {
    /// A synchronizing operation of agent scope together with one of agent or system scope on another agent.
    ///
    /// Since a Vulkan device is one agent, lowering would put them into each other's scope.
    #[error("agent scope between agents")]
    AgentScope { span: Span },
    /// An instruction that the dialect cannot express; such a test was not parsed from text.
    #[error("{what} in an HSA test")]
    Foreign {
        /// The name of such instructions.
        what: &'static str,
        span: Span,
    },
    /// The program would exceed the limits of the language.
    #[error("HSA test too large for a Vulkan program")]
    TooLarge {
        /// The mistake that the parser reports for its text.
        what: String,
        span: Span,
    },
}

impl LoweringError {
    /// Returns the position of the reason in the HSA test.
    pub fn span(&self) -> Span {
        match self {
            LoweringError::AgentScope { span }
            | LoweringError::Foreign { span, .. }
            | LoweringError::TooLarge { span, .. } => *span,
        }
    }
}

/// The result of a lowering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredTest {
    /// The program, in the native dialect.
    ///
    /// The awaited values of `await`s become its `filter`. If an awaited value is not read, the rest of the thread is
    /// skipped.
    pub test: Test,
    /// The HSA observable for each of the program's [observables](Test::observables).
    ///
    /// `None` for registers that HSA has no name for, such as the old value of an `atomicnoret`.
    pub hsa_observables: Vec<Option<Observable>>,
}

impl LoweredTest {
    /// Returns the program with the names of the HSA test, as records show its outcomes. The native syntax
    /// cannot express them.
    pub fn with_hsa_names(&self, hsa: &Test) -> Test {
        let mut named = self.test.clone();
        for (location, original) in named.locations.iter_mut().zip(&hsa.locations) {
            location.name.clone_from(&original.name);
        }
        for (thread, original) in named.threads.iter_mut().zip(&hsa.threads) {
            for register in &mut thread.registers {
                let is_counterpart =
                    |candidate: &&Register| native_register(&candidate.name).as_ref() == Some(&register.name);
                if let Some(hsa_register) = original.registers.iter().find(is_counterpart) {
                    register.name.clone_from(&hsa_register.name);
                }
            }
        }
        named
    }

    /// Converts an outcome of the program to one of the HSA test, whose observables are `observables`.
    pub fn to_hsa_outcome(&self, hsa: &Test, observables: &[Observable], outcome: &Outcome) -> Outcome {
        let value = |observable: &Observable| {
            let at = self.hsa_observables.iter().position(|meaning| meaning.as_ref() == Some(observable));
            match (at.and_then(|at| outcome.0.get(at)), observable) {
                (Some(value), _) => *value,
                (None, Observable::Register(thread, register)) => hsa.initial_register(*thread, *register),
                (None, Observable::Location(location, component)) => hsa.initial_value(*location, *component),
            }
        };
        Outcome(observables.iter().map(value).collect())
    }
}

/// Returns the register of the native dialect for a name such as `$s0`.
fn native_register(name: &str) -> Option<String> {
    name.strip_prefix("$s").map(|digits| format!("r{digits}"))
}

/// Lowers an HSA test to a Vulkan program.
///
/// ```
/// let hsa = litmus::parse(
///     "HSA t { x = 0; } P0@wave 0, wg 0, agent 0 ; atomic_st_global_screl_agent_u32 1, [x] ; exists (x = 1)",
///     "t.litmus",
/// )?;
/// let program = litmus::lower_to_vulkan(&hsa)?.test;
/// assert!(litmus::print(&program).contains("st.atom.rel.dv.sc0.semsc0.semsc1.semav x, 1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If a Vulkan device cannot run the test, with the rule and its position.
pub fn lower_to_vulkan(hsa: &Test) -> Result<LoweredTest, LoweringError> {
    check_words(hsa)?;
    check_agents(hsa)?;
    let names = location_names(hsa);
    let locations =
        hsa.locations.iter().zip(names).map(|(location, name)| Location { name, ..location.clone() });
    let mut filter = None;
    let mut threads = Vec::new();
    for (index, thread) in hsa.threads.iter().enumerate() {
        let id = ThreadId(index as u16);
        let mut lowering = ThreadLowering::new(hsa, id);
        lowering.lower_thread();
        let ThreadLowering { registers, labels, out, conditions, .. } = lowering;
        for condition in conditions {
            filter = Some(match filter.take() {
                Some(before) => Condition::And(Box::new(before), Box::new(condition)),
                None => condition,
            });
        }
        threads.push(Thread {
            number: index as u32,
            place: ThreadPlace::Device(merged_placement(hsa, thread)),
            registers,
            labels,
            instructions: out,
            span: thread.span,
        });
    }
    let mut metadata = Metadata { unknown_keys: Vec::new(), ..hsa.metadata.clone() };
    metadata.expectations.retain(|expectation| expectation.model != MODEL);
    let unparsed = Test {
        metadata,
        locations: locations.collect(),
        threads,
        system_sync: hsa.system_sync.clone(),
        calls: hsa.calls.clone(),
        filter,
        ..Test::new(&hsa.name, Dialect::Vulkan)
    };
    // The question refers to registers by their index in the HSA test.
    let unparsed = Test { question: lower_question(hsa, &unparsed), ..unparsed };
    let span = hsa.threads.first().map(|thread| thread.span).unwrap_or_default();
    // Reparsing numbers the registers canonically and sets the lines to those of the program's own text.
    let test = crate::parse(&crate::print(&unparsed), "lowered.litmus").map_err(|errors| {
        let what = errors.messages().first().map_or_else(|| errors.to_string(), |first| first.text.clone());
        LoweringError::TooLarge { what, span }
    })?;
    let meaning =
        test.observables().into_iter().map(|observable| hsa_observable(hsa, &test, observable)).collect();
    Ok(LoweredTest { test, hsa_observables: meaning })
}

/// Returns the HSA observable that an observable of the lowered test represents.
fn hsa_observable(hsa: &Test, lowered: &Test, observable: Observable) -> Option<Observable> {
    match observable {
        Observable::Location(..) => Some(observable),
        Observable::Register(thread, register) => {
            let register = lowered.thread(thread).registers.get(usize::from(register.0))?;
            let is_counterpart =
                |candidate: &Register| native_register(&candidate.name).as_ref() == Some(&register.name);
            let found = hsa.thread(thread).registers.iter().position(is_counterpart)?;
            Some(Observable::Register(thread, RegisterId(found as u16)))
        }
    }
}

/// Returns the question in terms of the lowered test, before that is parsed again.
///
/// Registers that no instruction uses are declared, so that the text may name them.
fn lower_question(hsa: &Test, unparsed: &Test) -> Option<Question> {
    let mut question = hsa.question.clone()?;
    translate_registers(&mut question.condition, hsa, unparsed);
    Some(question)
}

fn translate_registers(condition: &mut Condition, hsa: &Test, unparsed: &Test) {
    match condition {
        Condition::True => {}
        Condition::Compare { left, right, .. } => {
            for term in [left, right] {
                let Term::Register(thread, register) = term else { continue };
                let name = hsa.thread(*thread).registers.get(usize::from(register.0));
                let name = name.and_then(|register| native_register(&register.name));
                let place =
                    unparsed.thread(*thread).registers.iter().position(|r| Some(&r.name) == name.as_ref());
                if let Some(place) = place {
                    *register = RegisterId(place as u16);
                }
            }
        }
        Condition::And(left, right) | Condition::Or(left, right) => {
            translate_registers(left, hsa, unparsed);
            translate_registers(right, hsa, unparsed);
        }
        Condition::Not(inner) => translate_registers(inner, hsa, unparsed),
    }
}

/// Returns distinct location names that are valid in the native dialect.
fn location_names(hsa: &Test) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for location in &hsa.locations {
        let mut name = location.name.clone();
        let is_taken = |name: &String, names: &[String]| {
            names.contains(name) || hsa.locations.iter().any(|l| l.name == *name && l.name != location.name)
        };
        while !is_native_location(&name) || is_taken(&name, &names) {
            name.push('_');
        }
        names.push(name);
    }
    names
}

/// Returns the placement of a thread on one device: agents become workgroups.
fn merged_placement(hsa: &Test, thread: &Thread) -> Placement {
    let place = |thread: &Thread| match thread.place {
        ThreadPlace::Device(place) => place,
        ThreadPlace::Host => Placement { queue_family: 0, queue: 0, workgroup: 0, subgroup: 0 },
    };
    let own = place(thread);
    let same_agent = |other: &Thread| place(other).queue_family == own.queue_family;
    if hsa.threads.iter().all(same_agent) {
        return Placement { queue_family: 0, ..own };
    }
    let mut groups: Vec<(u32, u32)> = Vec::new();
    for place in hsa.threads.iter().map(place) {
        let group = (place.queue_family, place.workgroup);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let group = groups.iter().position(|group| *group == (own.queue_family, own.workgroup));
    Placement {
        queue_family: 0,
        queue: 0,
        workgroup: group.unwrap_or_default() as u32,
        subgroup: own.subgroup,
    }
}

/// Checks that merging all agents into one device changes no scope.
///
/// No operation of agent scope may have a synchronizing operation on another agent that it would reach on a
/// merged device.
fn check_agents(hsa: &Test) -> Result<(), LoweringError> {
    let reaching = |scope: Scope| {
        hsa.threads.iter().flat_map(move |thread| {
            let agent = match thread.place {
                ThreadPlace::Device(place) => place.queue_family,
                ThreadPlace::Host => u32::MAX,
            };
            let far = thread.instructions.iter().filter(move |i| effective_scope(&i.kind) >= Some(scope));
            far.map(move |instruction| (agent, instruction))
        })
    };
    for (agent, instruction) in reaching(Scope::Device) {
        if effective_scope(&instruction.kind) == Some(Scope::Device)
            && reaching(Scope::Device).any(|(other, _)| other != agent)
        {
            return Err(LoweringError::AgentScope { span: instruction.span });
        }
    }
    Ok(())
}

/// Checks that the dialect has words for every instruction.
fn check_words(hsa: &Test) -> Result<(), LoweringError> {
    for (index, thread) in hsa.threads.iter().enumerate() {
        for Instruction { kind, span } in &thread.instructions {
            if instruction_text(kind, hsa, ThreadId(index as u16)).is_none() {
                return Err(LoweringError::Foreign { what: kind.name(), span: *span });
            }
        }
    }
    Ok(())
}

/// Returns the scope of an atomic or a fence, limited by its segment.
fn effective_scope(kind: &InstructionKind) -> Option<Scope> {
    let scope = kind.memory_scope();
    match kind.access() {
        Some(access) if !access.strength.is_atomic() => None,
        Some(access) if access.place.class == StorageClass::Workgroup => {
            scope.map(|scope| scope.min(Scope::Workgroup))
        }
        _ => scope,
    }
}
