//! One thread of an HSA test as one of a Vulkan program.

#![deny(clippy::wildcard_enum_match_arm)]

use super::waiting::{is_skippable, will_come};
use super::{effective_scope, native_register};
use crate::condition::{Comparison, Condition, Term};
use crate::span::Span;
use crate::system::SystemOperation;
use crate::test::{
    Access, AccessKind, ArithmeticOperation, BranchRelation, Compute, Flow, Instruction, InstructionKind,
    Label, LabelId, MemoryAccess, MemoryPlace, Operand, Order, Register, RegisterId, RegisterInit,
    RmwOperation, Scope, Semantics, StorageClass, StorageClassSet, SystemSync, Test, Thread, ThreadId,
};

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
        ..Semantics::RELAXED
    }
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
pub(super) struct Lowering<'a> {
    hsa: &'a Test,
    id: ThreadId,
    thread: &'a Thread,
    pub(super) registers: Vec<Register>,
    pub(super) labels: Vec<Label>,
    pub(super) out: Vec<Instruction>,
    /// What must hold at the end for every `await` to have read what it waits for.
    pub(super) conditions: Vec<Condition>,
    /// The next number of a register that HSA has no name for.
    fresh: u64,
    /// By condition register.
    flags: Vec<Option<Flag>>,
    /// Where a thread goes whose `await` did not read what it waits for.
    end: Option<LabelId>,
    span: Span,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(hsa: &'a Test, id: ThreadId) -> Lowering<'a> {
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
        let assigned = self.thread.instructions.iter().flat_map(|i| i.kind.destinations());
        asked && !assigned.into_iter().any(|register| register == RegisterId(place as u16))
    }

    pub(super) fn lower(&mut self) {
        let is_side =
            |side: fn(&SystemSync) -> ThreadId| self.hsa.system_sync.iter().any(|sync| side(sync) == self.id);
        let (released, acquired) = (is_side(|sync| sync.from.thread), is_side(|sync| sync.to.thread));
        if acquired {
            self.emit(InstructionKind::System(SystemOperation::VisibleFromDevice));
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
            self.emit(InstructionKind::Flow(Flow::Label(end)));
        }
        if released {
            self.emit(InstructionKind::System(SystemOperation::AvailableToDevice));
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
        self.emit(InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }));
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
        let Some(InstructionKind::Flow(Flow::BranchIf { condition, .. })) = self.kind(at) else {
            return None;
        };
        let mut assigned: Vec<RegisterId> = Vec::new();
        for before in (0..at).rev() {
            let kind = self.kind(before)?;
            if let InstructionKind::Flow(Flow::Label(_)) = kind {
                return None;
            }
            if let InstructionKind::Compute(Compute::Compare { destination, relation, left, right }) = kind
                && destination == condition
            {
                let kept = |operand: &Operand| match operand {
                    Operand::Constant(_) => true,
                    Operand::Register(register) => !assigned.contains(register),
                };
                return (kept(left) && kept(right)).then_some((*relation, *left, *right));
            }
            assigned.extend(kind.destinations());
        }
        None
    }

    fn choose_flags(&mut self) {
        for at in 0..self.thread.instructions.len() {
            let Some(InstructionKind::Flow(Flow::BranchIf { condition, .. })) = self.kind(at) else {
                continue;
            };
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
        self.emit(InstructionKind::Flow(Flow::Branch { relation, left, right, target }));
    }

    // Awaits.

    fn awaits(&self) -> impl Iterator<Item = usize> + '_ {
        let is_await = |kind: &InstructionKind| {
            kind.access().is_some_and(|access| matches!(access.kind, AccessKind::Await { .. }))
        };
        (0..self.thread.instructions.len()).filter(move |at| self.kind(*at).is_some_and(is_await))
    }

    /// Whether the final value of its register tells whether an `await` has read what it waits for: it is a number, nothing
    /// else assigns the register, and no branch skips it.
    fn is_simple(&self, at: usize) -> bool {
        let access = self.kind(at).and_then(InstructionKind::access);
        let Some(AccessKind::Await { destination, value }) = access.map(|access| access.kind) else {
            return false;
        };
        let assigned = self.thread.instructions.iter().flat_map(|i| i.kind.destinations());
        let once = assigned.filter(|register| *register == destination).count() == 1;
        matches!(value, Operand::Constant(_)) && once && !is_skippable(self.thread, at)
    }

    // Instructions.

    #[expect(clippy::wildcard_enum_match_arm, reason = "what the dialect has no words for is refused before")]
    fn instruction(&mut self, at: usize, all_simple: bool) {
        let Some(instruction) = self.thread.instructions.get(at) else { return };
        self.span = instruction.span;
        let kind = &instruction.kind;
        let scope = vulkan_scope(kind);
        match kind {
            InstructionKind::Access(access) => self.access(access, scope, at, all_simple),
            InstructionKind::Fence { semantics, .. } if scope != Scope::Invocation => {
                let semantics = vulkan_semantics(semantics.order, scope);
                self.emit(InstructionKind::Fence { scope, semantics });
            }
            InstructionKind::Compute(Compute::Move { destination, value }) => {
                let (destination, value) = (self.register(*destination), self.operand(*value));
                self.assign(destination, ArithmeticOperation::Add, value, Operand::Constant(0));
            }
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let (left, right) = (self.operand(*left), self.operand(*right));
                self.assign(self.register(*destination), *operation, left, right);
            }
            InstructionKind::Compute(Compute::Compare { destination, relation, left, right }) => {
                if let Some(Flag::Held(flag)) = self.flag(*destination) {
                    let holds = self.fresh_label();
                    self.assign(flag, ArithmeticOperation::Add, Operand::Constant(1), Operand::Constant(0));
                    self.branch(*relation, *left, *right, holds);
                    self.assign(flag, ArithmeticOperation::Add, Operand::Constant(0), Operand::Constant(0));
                    self.emit(InstructionKind::Flow(Flow::Label(holds)));
                }
            }
            InstructionKind::Flow(Flow::BranchIf { condition, target }) => match self.flag(*condition) {
                Some(Flag::Held(flag)) => self.emit(InstructionKind::Flow(Flow::Branch {
                    relation: BranchRelation::NotEqual,
                    left: Operand::Register(flag),
                    right: Operand::Constant(0),
                    target: *target,
                })),
                _ => {
                    if let Some((relation, left, right)) = self.comparison_of(at) {
                        self.branch(relation, left, right, *target);
                    }
                }
            },
            InstructionKind::Flow(Flow::Label(label)) => {
                self.emit(InstructionKind::Flow(Flow::Label(*label)))
            }
            // A fence of one invocation orders nothing; what the dialect has no words for was refused.
            _ => {}
        }
    }

    fn access(&mut self, access: &MemoryAccess, scope: Scope, at: usize, all_simple: bool) {
        // An address orders nothing in Vulkan, and offsets are zero.
        let place = MemoryPlace::of(access.place.location, access.place.class);
        let lowered = |kind| {
            let (strength, performer) = (vulkan_access(access.strength, scope), access.performer);
            InstructionKind::Access(MemoryAccess { place, kind, strength, performer })
        };
        match access.kind {
            AccessKind::Load(destinations) => {
                let destinations = destinations.map(|destination| self.register(destination));
                self.emit(lowered(AccessKind::Load(destinations)));
            }
            AccessKind::Store(values) => {
                let values = values.map(|value| self.operand(value));
                self.emit(lowered(AccessKind::Store(values)));
            }
            AccessKind::Rmw { destination, operation } => {
                let destination = match destination {
                    Some(destination) => self.register(destination),
                    None => self.fresh_register(),
                };
                let operation = match operation {
                    RmwOperation::Exchange(value) => RmwOperation::Exchange(self.operand(value)),
                    RmwOperation::Fetch(operation, value) => {
                        RmwOperation::Fetch(operation, self.operand(value))
                    }
                    RmwOperation::CompareExchange { compare, value, unequal } => {
                        RmwOperation::CompareExchange {
                            compare: self.operand(compare),
                            value: self.operand(value),
                            unequal: vulkan_semantics(unequal.order, scope),
                        }
                    }
                };
                self.emit(lowered(AccessKind::Rmw { destination: Some(destination), operation }));
            }
            AccessKind::Await { destination, value } => {
                let order = access.semantics().order;
                self.await_value(self.register(destination), value, (place, scope, order), at, all_simple);
            }
        }
    }

    /// Loads `place` into `own` until the value is there.
    fn await_value(
        &mut self,
        own: RegisterId,
        value: Operand,
        (place, scope, order): (MemoryPlace, Scope, Order),
        at: usize,
        all_simple: bool,
    ) {
        let mut wanted = self.operand(value);
        if wanted == Operand::Register(own) {
            let kept = self.fresh_register();
            self.assign(kept, ArithmeticOperation::Add, wanted, Operand::Constant(0));
            wanted = Operand::Register(kept);
        }
        let load = |semantics| InstructionKind::load(own, place, Access::Atomic { scope, semantics });
        if will_come(self.hsa, self.id, at, &mut Vec::new()) {
            // The loop only waits: what follows it is ordered by the load that is asked about.
            let again = self.fresh_label();
            self.emit(InstructionKind::Flow(Flow::Label(again)));
            self.emit(load(Semantics::RELAXED));
            let (left, relation) = (Operand::Register(own), BranchRelation::NotEqual);
            self.emit(InstructionKind::Flow(Flow::Branch { relation, left, right: wanted, target: again }));
        }
        self.emit(load(vulkan_semantics(order, scope)));
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
            self.emit(InstructionKind::Flow(Flow::Branch {
                relation: BranchRelation::NotEqual,
                left: Operand::Register(own),
                right: constant.map_or(wanted, Operand::Constant),
                target: end,
            }));
        }
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
