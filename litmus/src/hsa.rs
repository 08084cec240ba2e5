//! Tests of HSA's memory model as Vulkan programs, for devices that know no HSA.
//!
//! A work-item becomes an invocation, a wave a subgroup, a work-group a workgroup, an agent the device. Release and acquire
//! keep their order and lose their part in a total one, since the Vulkan memory model has no sequential consistency. So
//! the lowered program allows at least what the original allows, and it races at least where the original does; what it
//! forbids is what a Vulkan device owes.

use thiserror::Error;

use crate::condition::{Comparison, Condition, Term};
use crate::metadata::Metadata;
use crate::outcome::{Observable, Outcome};
use crate::span::Span;
use crate::syntax::is_native_location;
use crate::test::{
    Access, ArithmeticOperation, BranchRelation, Dialect, Instruction, InstructionKind, Label, LabelId,
    Location, LocationId, Operand, Order, Place, Placement, Register, RegisterId, RegisterInit, RmwOperation,
    ScalarType, Scope, Semantics, StorageClass, StorageClassSet, Test, Thread, ThreadId,
};
use crate::value::Value;

/// Name of the model that an `expect:` line of an HSA test is for when it speaks of the test itself. Lines for other
/// models speak of the lowered one.
pub const MODEL: &str = "hsa";

/// Why an HSA test has no Vulkan program. Its [`Display`](std::fmt::Display) form is the name of the rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoweringError {
    /// A synchronizing operation of agent scope, and one of agent or system scope on another agent. A device is one agent:
    /// there they would be in each other's scope, which they are not.
    #[error("agent scope between agents")]
    AgentScope {
        /// The operation of agent scope.
        span: Span,
    },
    /// The program would be larger than the language allows.
    #[error("HSA test too large for a Vulkan program")]
    TooLarge {
        /// The mistake that its text would have.
        what: String,
        /// The test's first thread.
        span: Span,
    },
}

impl LoweringError {
    /// Where the reason stands in the HSA test.
    pub fn span(&self) -> Span {
        match self {
            LoweringError::AgentScope { span } | LoweringError::TooLarge { span, .. } => *span,
        }
    }
}

/// An HSA test as a Vulkan program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The program, in the native dialect. What an `await` waits for is its `filter`; where the awaited value is not read,
    /// the rest of the thread is skipped.
    pub test: Test,
    /// What each of the program's [observables](Test::observables) stands for in the HSA test; nothing for registers that
    /// HSA has no name for, such as the old value of an `atomicnoret`.
    pub meaning: Vec<Option<Observable>>,
}

impl Lowered {
    /// The program with the names of the HSA test, as records show its outcomes. The language cannot write it.
    pub fn with_names_of(&self, hsa: &Test) -> Test {
        let mut named = self.test.clone();
        for (location, original) in named.locations.iter_mut().zip(&hsa.locations) {
            location.name.clone_from(&original.name);
        }
        for (thread, original) in named.threads.iter_mut().zip(&hsa.threads) {
            for register in &mut thread.registers {
                let of =
                    |candidate: &&Register| native_register(&candidate.name).as_ref() == Some(&register.name);
                if let Some(found) = original.registers.iter().find(of) {
                    register.name.clone_from(&found.name);
                }
            }
        }
        named
    }

    /// What an outcome of the program is as one of the HSA test, whose observables are `observables`.
    pub fn outcome_of(&self, hsa: &Test, observables: &[Observable], outcome: &Outcome) -> Outcome {
        let value = |observable: &Observable| {
            let at = self.meaning.iter().position(|meaning| meaning.as_ref() == Some(observable));
            match (at.and_then(|at| outcome.0.get(at)), observable) {
                (Some(value), _) => *value,
                (None, Observable::Register(thread, register)) => hsa.initial_register(*thread, *register),
                (None, Observable::Location(location)) => hsa.initial_value(*location),
            }
        };
        Outcome(observables.iter().map(value).collect())
    }
}

/// The register of the native dialect for `$s0`.
fn native_register(name: &str) -> Option<String> {
    name.strip_prefix("$s").map(|digits| format!("r{digits}"))
}

/// The Vulkan program of an HSA test.
///
/// # Errors
/// When a Vulkan device cannot be asked, with the rule and its place.
pub fn lower(hsa: &Test) -> Result<Lowered, LoweringError> {
    check_agents(hsa)?;
    let names = location_names(hsa);
    let locations =
        hsa.locations.iter().zip(names).map(|(location, name)| Location { name, ..location.clone() });
    let mut filter = None;
    let mut threads = Vec::new();
    for (index, thread) in hsa.threads.iter().enumerate() {
        let id = ThreadId(index as u16);
        let mut lowering = Lowering::new(hsa, id);
        lowering.lower();
        let Lowering { registers, labels, out, conditions, .. } = lowering;
        for condition in conditions {
            filter = Some(match filter.take() {
                Some(before) => Condition::And(Box::new(before), Box::new(condition)),
                None => condition,
            });
        }
        threads.push(Thread {
            number: index as u32,
            place: Place::Device(placement(hsa, thread)),
            registers,
            labels,
            instructions: out,
            span: thread.span,
        });
    }
    let mut metadata = Metadata { unknown_keys: Vec::new(), ..hsa.metadata.clone() };
    metadata.expectations.retain(|expectation| expectation.model != MODEL);
    let built = Test {
        name: hsa.name.clone(),
        dialect: Dialect::Vulkan,
        metadata,
        locations: locations.collect(),
        threads,
        system_sync: hsa.system_sync.clone(),
        listed: Vec::new(),
        filter,
        question: None,
        khronos: None,
    };
    // The question names registers by their places in the HSA test.
    let built = Test { question: question(hsa, &built), ..built };
    let span = hsa.threads.first().map(|thread| thread.span).unwrap_or_default();
    // Registers are numbered as a reader numbers them, and lines are those of the program's own text.
    let test = crate::parse(&crate::print(&built), "lowered.litmus").map_err(|errors| {
        let what = errors.messages().first().map_or_else(|| errors.to_string(), |first| first.text.clone());
        LoweringError::TooLarge { what, span }
    })?;
    let meaning = test.observables().into_iter().map(|observable| meaning(hsa, &test, observable)).collect();
    Ok(Lowered { test, meaning })
}

/// What an observable of the lowered test is in the HSA test.
fn meaning(hsa: &Test, lowered: &Test, observable: Observable) -> Option<Observable> {
    match observable {
        Observable::Location(location) => Some(Observable::Location(location)),
        Observable::Register(thread, register) => {
            let register = lowered.thread(thread).registers.get(usize::from(register.0))?;
            let of = |candidate: &Register| native_register(&candidate.name).as_ref() == Some(&register.name);
            let found = hsa.thread(thread).registers.iter().position(of)?;
            Some(Observable::Register(thread, RegisterId(found as u16)))
        }
    }
}

/// The question in terms of the lowered test, before it is read again. Registers that no instruction needs are declared,
/// so that the text may name them.
fn question(hsa: &Test, built: &Test) -> Option<crate::condition::Question> {
    let mut question = hsa.question.clone()?;
    translate(&mut question.condition, hsa, built);
    Some(question)
}

fn translate(condition: &mut Condition, hsa: &Test, built: &Test) {
    match condition {
        Condition::True => {}
        Condition::Compare { left, right, .. } => {
            for term in [left, right] {
                let Term::Register(thread, register) = term else { continue };
                let name = hsa.thread(*thread).registers.get(usize::from(register.0));
                let name = name.and_then(|register| native_register(&register.name));
                let place =
                    built.thread(*thread).registers.iter().position(|r| Some(&r.name) == name.as_ref());
                if let Some(place) = place {
                    *register = RegisterId(place as u16);
                }
            }
        }
        Condition::And(left, right) | Condition::Or(left, right) => {
            translate(left, hsa, built);
            translate(right, hsa, built);
        }
        Condition::Not(inner) => translate(inner, hsa, built),
    }
}

/// Names that the native dialect takes, each once.
fn location_names(hsa: &Test) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for location in &hsa.locations {
        let mut name = location.name.clone();
        let others = |name: &String, names: &[String]| {
            names.contains(name) || hsa.locations.iter().any(|l| l.name == *name && l.name != location.name)
        };
        while !is_native_location(&name) || others(&name, &names) {
            name.push('_');
        }
        names.push(name);
    }
    names
}

/// Agents stand side by side as workgroups of one device.
fn placement(hsa: &Test, thread: &Thread) -> Placement {
    let place = |thread: &Thread| match thread.place {
        Place::Device(place) => place,
        Place::Host => Placement { queue_family: 0, workgroup: 0, subgroup: 0 },
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
    Placement { queue_family: 0, workgroup: group.unwrap_or_default() as u32, subgroup: own.subgroup }
}

/// Whether it makes no difference that agents become one: an operation of agent scope reaches nobody on another agent
/// that it would reach on a device of both.
fn check_agents(hsa: &Test) -> Result<(), LoweringError> {
    let reaching = |scope: Scope| {
        hsa.threads.iter().flat_map(move |thread| {
            let agent = match thread.place {
                Place::Device(place) => place.queue_family,
                Place::Host => u32::MAX,
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

/// The scope of an atomic or a fence, as far as its segment lets it reach.
fn effective_scope(kind: &InstructionKind) -> Option<Scope> {
    match kind.without_address() {
        InstructionKind::Load { class, access: Access::Atomic { scope, .. }, .. }
        | InstructionKind::Store { class, access: Access::Atomic { scope, .. }, .. }
        | InstructionKind::Rmw { class, scope, .. }
        | InstructionKind::Update { class, scope, .. }
        | InstructionKind::Await { class, scope, .. } => Some(match class {
            StorageClass::Workgroup => (*scope).min(Scope::Workgroup),
            _ => *scope,
        }),
        InstructionKind::Fence { scope, .. } => Some(*scope),
        _ => None,
    }
}

/// The scope in Vulkan's words: what is system for HSA is the device that all agents have become.
fn vulkan_scope(kind: &InstructionKind) -> Scope {
    effective_scope(kind).unwrap_or(Scope::Device).min(Scope::Device)
}

/// What orders, orders both segments, and makes available and visible what it orders. At the scope of one invocation it
/// orders nothing.
fn vulkan_semantics(order: Order, scope: Scope) -> Semantics {
    if order == Order::Relaxed || scope == Scope::Invocation {
        return Semantics::RELAXED;
    }
    Semantics {
        order,
        classes: StorageClassSet::EMPTY.with(StorageClass::Buffer).with(StorageClass::Workgroup),
        make_available: order.releases(),
        make_visible: order.acquires(),
    }
}

/// A write to a location: who does it, where, and what it leaves there.
struct Write {
    thread: ThreadId,
    at: usize,
    scope: Option<Scope>,
    value: Option<Value>,
}

fn writes(hsa: &Test, location: LocationId) -> Vec<Write> {
    let initial = hsa.initial_value(location);
    let constant = |operand: Operand| match operand {
        Operand::Constant(constant) => Some(Value::from_constant(constant, ScalarType::U32)),
        Operand::Register(_) => None,
    };
    let fetched = |operation: ArithmeticOperation, operand| {
        constant(operand).map(|value| operation.apply(initial, value, ScalarType::U32))
    };
    let mut found = Vec::new();
    for (thread, code) in hsa.threads.iter().enumerate() {
        for (at, instruction) in code.instructions.iter().enumerate() {
            let kind = instruction.kind.without_address();
            let (to, value) = match kind {
                InstructionKind::Store { location, value, .. } => (*location, constant(*value)),
                InstructionKind::Rmw { location, operation, .. } => match operation {
                    RmwOperation::Exchange(value) => (*location, constant(*value)),
                    RmwOperation::Fetch(operation, value) => (*location, fetched(*operation, *value)),
                    RmwOperation::CompareExchange { .. } => (*location, None),
                },
                InstructionKind::Update { location, operation, operand, .. } => {
                    (*location, fetched(*operation, *operand))
                }
                _ => continue,
            };
            if to == location {
                found.push(Write {
                    thread: ThreadId(thread as u16),
                    at,
                    scope: effective_scope(kind),
                    value,
                });
            }
        }
    }
    found
}

/// Whether some branch jumps over an instruction.
fn is_skippable(thread: &Thread, at: usize) -> bool {
    thread.instructions.iter().take(at).any(|before| match &before.kind {
        InstructionKind::BranchIf { target, .. } => {
            thread.instructions.iter().skip(at).any(|after| after.kind == InstructionKind::Label(*target))
        }
        _ => false,
    })
}

/// Whether an `await` can be waited for: the one write to its location is an atomic of another work-group that nothing
/// keeps from coming. Then a load that comes too early races with nothing, and a device that runs both work-groups ends
/// the loop. Within a work-group a device need not let one go on while another waits.
fn will_come(hsa: &Test, id: ThreadId, at: usize, asked: &mut Vec<(ThreadId, usize)>) -> bool {
    let thread = hsa.thread(id);
    let kind = thread.instructions.get(at).map(|instruction| instruction.kind.without_address());
    let Some(kind @ InstructionKind::Await { location, value: Operand::Constant(value), .. }) = kind else {
        return false;
    };
    // A circle of waits does not end.
    if asked.contains(&(id, at)) || !hsa.system_sync.is_empty() {
        return false;
    }
    asked.push((id, at));
    let [write] = &writes(hsa, *location)[..] else { return false };
    let writer = hsa.thread(write.thread);
    let (own, other) = (placement(hsa, thread), placement(hsa, writer));
    let reaches = Some(Scope::Device) <= write.scope && Some(Scope::Device) <= effective_scope(kind);
    own.workgroup != other.workgroup
        && reaches
        && write.value == Some(Value::from_constant(*value, ScalarType::U32))
        && !is_skippable(writer, write.at)
        && (0..write.at).all(|before| {
            let earlier =
                writer.instructions.get(before).map(|instruction| instruction.kind.without_address());
            !matches!(earlier, Some(InstructionKind::Await { .. }))
                || will_come(hsa, write.thread, before, asked)
        })
}

/// How a comparison reaches the branches that use it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    /// Each branch compares for itself.
    Folded,
    /// A register holds it.
    Held(RegisterId),
}

/// One thread on its way.
struct Lowering<'a> {
    hsa: &'a Test,
    id: ThreadId,
    thread: &'a Thread,
    registers: Vec<Register>,
    labels: Vec<Label>,
    out: Vec<Instruction>,
    /// What must hold at the end for every `await` to have read what it waits for.
    conditions: Vec<Condition>,
    /// The next number of a register that HSA has no name for.
    fresh: u64,
    /// By condition register.
    flags: Vec<Option<Flag>>,
    /// Where a thread goes whose `await` did not read what it waits for.
    end: Option<LabelId>,
    span: Span,
}

impl<'a> Lowering<'a> {
    fn new(hsa: &'a Test, id: ThreadId) -> Lowering<'a> {
        /// Numbers beyond it are not counted on from.
        const MOST: u64 = 1 << 32;
        let thread = hsa.thread(id);
        let numbers = thread.registers.iter().filter_map(|register| register.name.strip_prefix("$s"));
        let highest = numbers.filter_map(|digits| digits.parse::<u64>().ok()).filter(|n| *n < MOST).max();
        let mut lowering = Lowering {
            hsa,
            id,
            thread,
            registers: Vec::new(),
            labels: Vec::new(),
            out: Vec::new(),
            conditions: Vec::new(),
            fresh: highest.map_or(0, |highest| highest + 1),
            flags: vec![None; thread.registers.len()],
            end: None,
            span: thread.span,
        };
        for register in &thread.registers {
            // What the initial state declares and what the question names have a name, whatever the code does.
            if let Some(name) = native_register(&register.name) {
                let init = register.init;
                let declared = register.declared || lowering.is_asked_for(&register.name);
                lowering.registers.push(Register { name, init, declared });
            }
        }
        for index in 0..thread.labels.len() {
            lowering.labels.push(Label { name: format!("LC{index:02}") });
        }
        lowering
    }

    /// Whether a register is named by the question and assigned by no instruction.
    fn is_asked_for(&self, name: &str) -> bool {
        let id = |register: &Register| register.name == name;
        let Some(place) = self.thread.registers.iter().position(id) else { return false };
        let own = Term::Register(self.id, RegisterId(place as u16));
        let mut asked = false;
        if let Some(question) = &self.hsa.question {
            question.condition.for_each_term(&mut |term| asked |= *term == own);
        }
        let assigned = self.thread.instructions.iter().filter_map(|i| i.kind.destination());
        asked && !assigned.into_iter().any(|register| register == RegisterId(place as u16))
    }

    fn lower(&mut self) {
        let is_side = |side: fn(&crate::test::SystemSync) -> ThreadId| {
            self.hsa.system_sync.iter().any(|sync| side(sync) == self.id)
        };
        let (released, acquired) = (is_side(|sync| sync.from.thread), is_side(|sync| sync.to.thread));
        if acquired {
            self.emit(InstructionKind::VisibleFromDevice);
        }
        self.choose_flags();
        let all_simple = self.awaits().all(|at| self.is_simple(at));
        for at in 0..self.thread.instructions.len() {
            self.instruction(at, all_simple);
        }
        if !all_simple {
            // Whoever comes here has read all that he waited for.
            let passed = self.fresh_register();
            self.assign(passed, ArithmeticOperation::Add, Operand::Constant(1), Operand::Constant(0));
            self.expect(passed, 1);
        }
        if let Some(end) = self.end {
            self.emit(InstructionKind::Label(end));
        }
        if released {
            self.emit(InstructionKind::AvailableToDevice);
        }
    }

    fn emit(&mut self, kind: InstructionKind) {
        self.out.push(Instruction { kind, span: self.span });
    }

    fn assign(
        &mut self,
        destination: RegisterId,
        operation: ArithmeticOperation,
        left: Operand,
        right: Operand,
    ) {
        self.emit(InstructionKind::Arithmetic { destination, operation, left, right });
    }

    fn expect(&mut self, register: RegisterId, value: i64) {
        self.conditions.push(Condition::Compare {
            left: Term::Register(self.id, register),
            comparison: Comparison::Equal,
            right: Term::Constant(value),
        });
    }

    fn fresh_register(&mut self) -> RegisterId {
        let name = format!("r{}", self.fresh);
        self.fresh += 1;
        self.registers.push(Register { name, init: RegisterInit::Constant(0), declared: false });
        RegisterId((self.registers.len() - 1) as u16)
    }

    fn fresh_label(&mut self) -> LabelId {
        self.labels.push(Label { name: format!("LC{:02}", self.labels.len()) });
        LabelId((self.labels.len() - 1) as u16)
    }

    /// The lowered form of a value register.
    fn register(&self, id: RegisterId) -> RegisterId {
        let name = self.thread.registers.get(usize::from(id.0)).and_then(|r| native_register(&r.name));
        let place = self.registers.iter().position(|register| Some(&register.name) == name.as_ref());
        RegisterId(place.unwrap_or_default() as u16)
    }

    fn operand(&self, operand: Operand) -> Operand {
        match operand {
            Operand::Constant(constant) => Operand::Constant(constant),
            Operand::Register(register) => Operand::Register(self.register(register)),
        }
    }

    // Branches.

    fn kind(&self, at: usize) -> Option<&'a InstructionKind> {
        self.thread.instructions.get(at).map(|instruction| &instruction.kind)
    }

    /// The comparison that decides the branch at `at`, where the branch may as well compare for itself: nothing joins in
    /// between, and what is compared is still there.
    fn comparison_of(&self, at: usize) -> Option<(BranchRelation, Operand, Operand)> {
        let Some(InstructionKind::BranchIf { condition, .. }) = self.kind(at) else { return None };
        let mut assigned: Vec<RegisterId> = Vec::new();
        for before in (0..at).rev() {
            match self.kind(before)? {
                InstructionKind::Label(_) => return None,
                InstructionKind::Compare { destination, relation, left, right }
                    if destination == condition =>
                {
                    let kept = |operand: &Operand| match operand {
                        Operand::Constant(_) => true,
                        Operand::Register(register) => !assigned.contains(register),
                    };
                    return (kept(left) && kept(right)).then_some((*relation, *left, *right));
                }
                other => assigned.extend(other.destination()),
            }
        }
        None
    }

    fn choose_flags(&mut self) {
        for at in 0..self.thread.instructions.len() {
            let Some(InstructionKind::BranchIf { condition, .. }) = self.kind(at) else { continue };
            let place = usize::from(condition.0);
            let known = self.flags.get(place).copied().flatten();
            let flag = match known {
                Some(held @ Flag::Held(_)) => held,
                _ if self.comparison_of(at).is_some() => Flag::Folded,
                _ => Flag::Held(self.fresh_register()),
            };
            if let Some(slot) = self.flags.get_mut(place) {
                *slot = Some(flag);
            }
        }
    }

    fn flag(&self, condition: RegisterId) -> Option<Flag> {
        self.flags.get(usize::from(condition.0)).copied().flatten()
    }

    /// Jumps where an unsigned relation holds; the language's own comparisons are signed.
    fn branch(&mut self, relation: BranchRelation, left: Operand, right: Operand, target: LabelId) {
        let equality = matches!(relation, BranchRelation::Equal | BranchRelation::NotEqual);
        let side = |lowering: &mut Self, operand: Operand| match (operand, equality) {
            (Operand::Constant(constant), true) => Operand::Constant(i64::from(constant as u32 as i32)),
            (Operand::Constant(constant), false) => {
                Operand::Constant(i64::from((constant as u32 ^ SIGN) as i32))
            }
            (Operand::Register(_), true) => lowering.operand(operand),
            (Operand::Register(_), false) => {
                let biased = lowering.fresh_register();
                let operand = lowering.operand(operand);
                lowering.assign(
                    biased,
                    ArithmeticOperation::Xor,
                    operand,
                    Operand::Constant(i64::from(SIGN)),
                );
                Operand::Register(biased)
            }
        };
        let left = side(self, left);
        let right = side(self, right);
        self.emit(InstructionKind::Branch { relation, left, right, target });
    }

    // Awaits.

    fn awaits(&self) -> impl Iterator<Item = usize> + '_ {
        let is_await =
            |kind: &InstructionKind| matches!(kind.without_address(), InstructionKind::Await { .. });
        (0..self.thread.instructions.len()).filter(move |at| self.kind(*at).is_some_and(is_await))
    }

    /// Whether the final value of its register tells whether an `await` has read what it waits for: it is a number, nothing
    /// else assigns the register, and no branch skips it.
    fn is_simple(&self, at: usize) -> bool {
        let Some(InstructionKind::Await { destination, value, .. }) =
            self.kind(at).map(InstructionKind::without_address)
        else {
            return false;
        };
        let assigned = self.thread.instructions.iter().filter_map(|i| i.kind.destination());
        let once = assigned.filter(|register| register == destination).count() == 1;
        matches!(value, Operand::Constant(_)) && once && !is_skippable(self.thread, at)
    }

    // Instructions.

    fn instruction(&mut self, at: usize, all_simple: bool) {
        let Some(instruction) = self.thread.instructions.get(at) else { return };
        self.span = instruction.span;
        // An address orders nothing in Vulkan, and offsets are zero.
        let kind = instruction.kind.without_address();
        let scope = vulkan_scope(kind);
        match kind {
            InstructionKind::Load { destination, location, class, access, .. } => {
                self.emit(InstructionKind::Load {
                    destination: self.register(*destination),
                    location: *location,
                    offset: 0,
                    scalar: None,
                    class: *class,
                    access: vulkan_access(*access, scope),
                });
            }
            InstructionKind::Store { location, value, class, access, .. } => {
                self.emit(InstructionKind::Store {
                    location: *location,
                    offset: 0,
                    scalar: None,
                    value: self.operand(*value),
                    class: *class,
                    access: vulkan_access(*access, scope),
                });
            }
            InstructionKind::Rmw { destination, location, operation, class, semantics, .. } => {
                let operation = match operation {
                    RmwOperation::Exchange(value) => RmwOperation::Exchange(self.operand(*value)),
                    RmwOperation::Fetch(operation, value) => {
                        RmwOperation::Fetch(*operation, self.operand(*value))
                    }
                    RmwOperation::CompareExchange { compare, value, unequal } => {
                        RmwOperation::CompareExchange {
                            compare: self.operand(*compare),
                            value: self.operand(*value),
                            unequal: vulkan_semantics(unequal.order, scope),
                        }
                    }
                };
                let destination = self.register(*destination);
                self.rmw(destination, *location, operation, *class, scope, semantics.order);
            }
            InstructionKind::Update { location, operation, operand, class, semantics, .. } => {
                let destination = self.fresh_register();
                let operation = RmwOperation::Fetch(*operation, self.operand(*operand));
                self.rmw(destination, *location, operation, *class, scope, semantics.order);
            }
            InstructionKind::Fence { semantics, .. } => {
                if scope != Scope::Invocation {
                    let semantics = vulkan_semantics(semantics.order, scope);
                    self.emit(InstructionKind::Fence { scope, semantics });
                }
            }
            InstructionKind::Await { destination, location, value, class, semantics, .. } => {
                let (own, mut wanted) = (self.register(*destination), self.operand(*value));
                if wanted == Operand::Register(own) {
                    let kept = self.fresh_register();
                    self.assign(kept, ArithmeticOperation::Add, wanted, Operand::Constant(0));
                    wanted = Operand::Register(kept);
                }
                let load = |semantics| InstructionKind::Load {
                    destination: own,
                    location: *location,
                    offset: 0,
                    scalar: None,
                    class: *class,
                    access: Access::Atomic { scope, semantics },
                };
                let semantics = vulkan_semantics(semantics.order, scope);
                if will_come(self.hsa, self.id, at, &mut Vec::new()) {
                    // The loop only waits: what follows it is ordered by the load that is asked about.
                    let again = self.fresh_label();
                    self.emit(InstructionKind::Label(again));
                    self.emit(load(Semantics::RELAXED));
                    let (left, relation) = (Operand::Register(own), BranchRelation::NotEqual);
                    self.emit(InstructionKind::Branch { relation, left, right: wanted, target: again });
                }
                self.emit(load(semantics));
                let constant = match wanted {
                    Operand::Constant(constant) => Some(i64::from(constant as u32 as i32)),
                    Operand::Register(_) => None,
                };
                if let (Some(constant), true) = (constant, all_simple) {
                    self.expect(own, constant);
                }
                if !all_simple || at + 1 < self.thread.instructions.len() {
                    let end = match self.end {
                        Some(end) => end,
                        None => self.fresh_label(),
                    };
                    self.end = Some(end);
                    self.emit(InstructionKind::Branch {
                        relation: BranchRelation::NotEqual,
                        left: Operand::Register(own),
                        right: constant.map_or(wanted, Operand::Constant),
                        target: end,
                    });
                }
            }
            InstructionKind::Move { destination, value } => {
                let (destination, value) = (self.register(*destination), self.operand(*value));
                self.assign(destination, ArithmeticOperation::Add, value, Operand::Constant(0));
            }
            InstructionKind::Arithmetic { destination, operation, left, right } => {
                let (left, right) = (self.operand(*left), self.operand(*right));
                self.assign(self.register(*destination), *operation, left, right);
            }
            InstructionKind::Compare { destination, relation, left, right } => {
                if let Some(Flag::Held(flag)) = self.flag(*destination) {
                    let holds = self.fresh_label();
                    self.assign(flag, ArithmeticOperation::Add, Operand::Constant(1), Operand::Constant(0));
                    self.branch(*relation, *left, *right, holds);
                    self.assign(flag, ArithmeticOperation::Add, Operand::Constant(0), Operand::Constant(0));
                    self.emit(InstructionKind::Label(holds));
                }
            }
            InstructionKind::BranchIf { condition, target } => match self.flag(*condition) {
                Some(Flag::Held(flag)) => self.emit(InstructionKind::Branch {
                    relation: BranchRelation::NotEqual,
                    left: Operand::Register(flag),
                    right: Operand::Constant(0),
                    target: *target,
                }),
                _ => {
                    if let Some((relation, left, right)) = self.comparison_of(at) {
                        self.branch(relation, left, right, *target);
                    }
                }
            },
            InstructionKind::Label(label) => self.emit(InstructionKind::Label(*label)),
            // No parser of the HSA dialect makes anything else.
            InstructionKind::ControlBarrier(_)
            | InstructionKind::AvailableToDevice
            | InstructionKind::VisibleFromDevice
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Goto(_)
            | InstructionKind::Branch { .. }
            | InstructionKind::Cooperative(_)
            | InstructionKind::Addressed { .. } => self.emit(kind.clone()),
        }
    }

    fn rmw(
        &mut self,
        destination: RegisterId,
        location: LocationId,
        operation: RmwOperation,
        class: StorageClass,
        scope: Scope,
        order: Order,
    ) {
        let semantics = vulkan_semantics(order, scope);
        let (offset, scalar) = (0, None);
        self.emit(InstructionKind::Rmw {
            destination,
            location,
            offset,
            scalar,
            operation,
            class,
            scope,
            semantics,
        });
    }
}

/// The highest bit: with it turned, unsigned numbers compare as signed ones.
const SIGN: u32 = 1 << 31;

/// Ordinary accesses are plain ones that others may be ordered with.
fn vulkan_access(access: Access, scope: Scope) -> Access {
    match access {
        Access::Atomic { semantics, .. } => {
            Access::Atomic { scope, semantics: vulkan_semantics(semantics.order, scope) }
        }
        Access::Private | Access::NonPrivate | Access::Coherent { .. } => Access::NonPrivate,
    }
}
