//! Lowers one thread of an HSA test to a thread of a Vulkan program.

#![deny(clippy::wildcard_enum_match_arm)]

use super::awaits::{always_terminates, is_skippable};
use super::{effective_scope, native_register};
use crate::comparison::Comparison;
use crate::condition::{Condition, Term};
use crate::span::Span;
use crate::system::SystemOperation;
use crate::test::{
    Access, AccessKind, ArithmeticOperation, Compute, Flow, Instruction, InstructionKind, Label, LabelId,
    MemoryAccess, MemoryPlace, Operand, Order, Register, RegisterId, RegisterInit, RmwOperation, Scope,
    Semantics, StorageClass, StorageClassSet, SystemSync, Test, Thread, ThreadId,
};

/// Returns the Vulkan scope; HSA's system scope becomes the device that all agents are merged into.
fn vulkan_scope(kind: &InstructionKind) -> Scope {
    effective_scope(kind).unwrap_or(Scope::Device).min(Scope::Device)
}

/// Returns the Vulkan semantics of an HSA order: both segments, with availability and visibility.
///
/// Operations at invocation scope order nothing.
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

/// The form in which branches use a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparisonForm {
    /// Each branch compares for itself.
    Folded,
    /// A register holds it.
    Materialized(RegisterId),
}

/// The lowering of one thread in progress.
pub(super) struct ThreadLowering<'a> {
    hsa: &'a Test,
    id: ThreadId,
    thread: &'a Thread,
    pub(super) registers: Vec<Register>,
    pub(super) labels: Vec<Label>,
    pub(super) out: Vec<Instruction>,
    /// Conditions on final values; all hold if every `await` read its awaited value.
    pub(super) conditions: Vec<Condition>,
    /// The next number for a register without an HSA name.
    next_register: u64,
    /// The forms of comparisons, by condition register.
    comparison_forms: Vec<Option<ComparisonForm>>,
    /// The label that a thread jumps to if an `await` did not read its awaited value.
    end: Option<LabelId>,
    span: Span,
}

impl<'a> ThreadLowering<'a> {
    pub(super) fn new(hsa: &'a Test, id: ThreadId) -> ThreadLowering<'a> {
        /// Larger register numbers do not raise the start of fresh numbers.
        const MAX_REGISTER_NUMBER: u64 = 1 << 32;
        let thread = hsa.thread(id);
        let numbers = thread.registers.iter().filter_map(|register| register.name.strip_prefix("$s"));
        let highest = numbers
            .filter_map(|digits| digits.parse::<u64>().ok())
            .filter(|n| *n < MAX_REGISTER_NUMBER)
            .max();
        let mut lowering = ThreadLowering {
            hsa,
            id,
            thread,
            registers: Vec::new(),
            labels: Vec::new(),
            out: Vec::new(),
            conditions: Vec::new(),
            next_register: highest.map_or(0, |highest| highest + 1),
            comparison_forms: vec![None; thread.registers.len()],
            end: None,
            span: thread.span,
        };
        for register in &thread.registers {
            // Declared registers and registers in the question get a name, even if no instruction uses them.
            if let Some(name) = native_register(&register.name) {
                let init = register.init;
                let declared = register.declared || lowering.is_only_in_question(&register.name);
                lowering.registers.push(Register { name, init, declared });
            }
        }
        for index in 0..thread.labels.len() {
            lowering.labels.push(Label { name: format!("LC{index:02}") });
        }
        lowering
    }

    /// Returns true if a register is named by the question and assigned by no instruction.
    fn is_only_in_question(&self, name: &str) -> bool {
        let id = |register: &Register| register.name == name;
        let Some(place) = self.thread.registers.iter().position(id) else { return false };
        let register_term = Term::Register(self.id, RegisterId(place as u16));
        let mut is_in_question = false;
        if let Some(question) = &self.hsa.question {
            question.condition.for_each_term(&mut |term| is_in_question |= *term == register_term);
        }
        let assigned = self.thread.instructions.iter().flat_map(|i| i.kind.destinations());
        is_in_question && !assigned.into_iter().any(|register| register == RegisterId(place as u16))
    }

    pub(super) fn lower_thread(&mut self) {
        let has_sync_side =
            |side: fn(&SystemSync) -> ThreadId| self.hsa.system_sync.iter().any(|sync| side(sync) == self.id);
        let (released, acquired) =
            (has_sync_side(|sync| sync.from.thread), has_sync_side(|sync| sync.to.thread));
        if acquired {
            self.emit(InstructionKind::System(SystemOperation::VisibleFromDevice));
        }
        self.choose_comparison_forms();
        let all_decisive = self.await_indices().all(|at| self.has_decisive_final_value(at));
        for at in 0..self.thread.instructions.len() {
            self.lower_instruction(at, all_decisive);
        }
        if !all_decisive {
            // Reached only if every `await` has read its awaited value.
            let completion_flag = self.fresh_register();
            self.emit_move(completion_flag, Operand::Constant(1));
            self.require_final_value(completion_flag, 1);
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

    /// Sets a register: Vulkan programs have no moves.
    fn emit_move(&mut self, destination: RegisterId, value: Operand) {
        self.emit_arithmetic(destination, ArithmeticOperation::Add, value, Operand::Constant(0));
    }

    fn emit_arithmetic(
        &mut self,
        destination: RegisterId,
        operation: ArithmeticOperation,
        left: Operand,
        right: Operand,
    ) {
        self.emit(InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }));
    }

    fn require_final_value(&mut self, register: RegisterId, value: i64) {
        self.conditions.push(Condition::Compare {
            left: Term::Register(self.id, register),
            comparison: Comparison::Equal,
            right: Term::Constant(value),
        });
    }

    fn fresh_register(&mut self) -> RegisterId {
        let name = format!("r{}", self.next_register);
        self.next_register += 1;
        self.registers.push(Register { name, init: RegisterInit::Constant(0), declared: false });
        RegisterId((self.registers.len() - 1) as u16)
    }

    fn fresh_label(&mut self) -> LabelId {
        self.labels.push(Label { name: format!("LC{:02}", self.labels.len()) });
        LabelId((self.labels.len() - 1) as u16)
    }

    /// Returns the lowered form of a value register.
    fn lowered_register(&self, id: RegisterId) -> RegisterId {
        let name = self.thread.registers.get(usize::from(id.0)).and_then(|r| native_register(&r.name));
        let place = self.registers.iter().position(|register| Some(&register.name) == name.as_ref());
        RegisterId(place.unwrap_or_default() as u16)
    }

    fn lowered_operand(&self, operand: Operand) -> Operand {
        match operand {
            Operand::Constant(constant) => Operand::Constant(constant),
            Operand::Register(register) => Operand::Register(self.lowered_register(register)),
        }
    }

    // Branches.

    fn kind_at(&self, at: usize) -> Option<&'a InstructionKind> {
        self.thread.instructions.get(at).map(|instruction| &instruction.kind)
    }

    /// Returns the comparison that decides the branch at `at`, if it can be folded into the branch.
    ///
    /// Then no label lies in between, and the operands are still unchanged at the branch.
    fn foldable_comparison(&self, at: usize) -> Option<(Comparison, Operand, Operand)> {
        let Some(InstructionKind::Flow(Flow::BranchIf { condition, .. })) = self.kind_at(at) else {
            return None;
        };
        let mut assigned: Vec<RegisterId> = Vec::new();
        for before in (0..at).rev() {
            let kind = self.kind_at(before)?;
            if let InstructionKind::Flow(Flow::Label(_)) = kind {
                return None;
            }
            if let InstructionKind::Compute(Compute::Compare { destination, relation, left, right }) = kind
                && destination == condition
            {
                let is_unchanged = |operand: &Operand| match operand {
                    Operand::Constant(_) => true,
                    Operand::Register(register) => !assigned.contains(register),
                };
                return (is_unchanged(left) && is_unchanged(right)).then_some((*relation, *left, *right));
            }
            assigned.extend(kind.destinations());
        }
        None
    }

    fn choose_comparison_forms(&mut self) {
        for at in 0..self.thread.instructions.len() {
            let Some(InstructionKind::Flow(Flow::BranchIf { condition, .. })) = self.kind_at(at) else {
                continue;
            };
            let place = usize::from(condition.0);
            let existing = self.comparison_forms.get(place).copied().flatten();
            let flag = match existing {
                Some(held @ ComparisonForm::Materialized(_)) => held,
                _ if self.foldable_comparison(at).is_some() => ComparisonForm::Folded,
                _ => ComparisonForm::Materialized(self.fresh_register()),
            };
            if let Some(slot) = self.comparison_forms.get_mut(place) {
                *slot = Some(flag);
            }
        }
    }

    fn comparison_form(&self, condition: RegisterId) -> Option<ComparisonForm> {
        self.comparison_forms.get(usize::from(condition.0)).copied().flatten()
    }

    /// Jumps if an unsigned relation holds; the native dialect's own comparisons are signed.
    fn emit_unsigned_branch(&mut self, relation: Comparison, left: Operand, right: Operand, target: LabelId) {
        let equality = matches!(relation, Comparison::Equal | Comparison::NotEqual);
        let lower_side = |lowering: &mut Self, operand: Operand| match (operand, equality) {
            (Operand::Constant(constant), true) => Operand::Constant(i64::from(constant as u32 as i32)),
            (Operand::Constant(constant), false) => {
                Operand::Constant(i64::from((constant as u32 ^ SIGN) as i32))
            }
            (Operand::Register(_), true) => lowering.lowered_operand(operand),
            (Operand::Register(_), false) => {
                let biased = lowering.fresh_register();
                let operand = lowering.lowered_operand(operand);
                lowering.emit_arithmetic(
                    biased,
                    ArithmeticOperation::Xor,
                    operand,
                    Operand::Constant(i64::from(SIGN)),
                );
                Operand::Register(biased)
            }
        };
        let left = lower_side(self, left);
        let right = lower_side(self, right);
        self.emit(InstructionKind::Flow(Flow::Branch { relation, left, right, target }));
    }

    // Awaits.

    fn await_indices(&self) -> impl Iterator<Item = usize> + '_ {
        let is_await = |kind: &InstructionKind| {
            kind.access().is_some_and(|access| matches!(access.kind, AccessKind::Await { .. }))
        };
        (0..self.thread.instructions.len()).filter(move |at| self.kind_at(*at).is_some_and(is_await))
    }

    /// Returns true if the final value of its register shows whether an `await` has read its awaited value.
    ///
    /// The awaited value is a constant, no other instruction assigns the register, and no branch skips the
    /// `await`.
    fn has_decisive_final_value(&self, at: usize) -> bool {
        let access = self.kind_at(at).and_then(InstructionKind::access);
        let Some(AccessKind::Await { destination, value }) = access.map(|access| access.kind) else {
            return false;
        };
        let assigned = self.thread.instructions.iter().flat_map(|i| i.kind.destinations());
        let is_assigned_once = assigned.filter(|register| *register == destination).count() == 1;
        matches!(value, Operand::Constant(_)) && is_assigned_once && !is_skippable(self.thread, at)
    }

    // Instructions.

    #[expect(clippy::wildcard_enum_match_arm, reason = "what the dialect has no words for is refused before")]
    fn lower_instruction(&mut self, at: usize, all_decisive: bool) {
        let Some(instruction) = self.thread.instructions.get(at) else { return };
        self.span = instruction.span;
        let kind = &instruction.kind;
        let scope = vulkan_scope(kind);
        match kind {
            InstructionKind::Access(access) => self.lower_access(access, scope, at, all_decisive),
            InstructionKind::Fence { semantics, .. } if scope != Scope::Invocation => {
                let semantics = vulkan_semantics(semantics.order, scope);
                self.emit(InstructionKind::Fence { scope, semantics });
            }
            InstructionKind::Compute(Compute::Move { destination, value }) => {
                let (destination, value) =
                    (self.lowered_register(*destination), self.lowered_operand(*value));
                self.emit_move(destination, value);
            }
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let (left, right) = (self.lowered_operand(*left), self.lowered_operand(*right));
                self.emit_arithmetic(self.lowered_register(*destination), *operation, left, right);
            }
            InstructionKind::Compute(Compute::Compare { destination, relation, left, right }) => {
                if let Some(ComparisonForm::Materialized(flag)) = self.comparison_form(*destination) {
                    let holds = self.fresh_label();
                    self.emit_move(flag, Operand::Constant(1));
                    self.emit_unsigned_branch(*relation, *left, *right, holds);
                    self.emit_move(flag, Operand::Constant(0));
                    self.emit(InstructionKind::Flow(Flow::Label(holds)));
                }
            }
            InstructionKind::Flow(Flow::BranchIf { condition, target }) => match self
                .comparison_form(*condition)
            {
                Some(ComparisonForm::Materialized(flag)) => self.emit(InstructionKind::Flow(Flow::Branch {
                    relation: Comparison::NotEqual,
                    left: Operand::Register(flag),
                    right: Operand::Constant(0),
                    target: *target,
                })),
                _ => {
                    if let Some((relation, left, right)) = self.foldable_comparison(at) {
                        self.emit_unsigned_branch(relation, left, right, *target);
                    }
                }
            },
            InstructionKind::Flow(Flow::Label(label)) => {
                self.emit(InstructionKind::Flow(Flow::Label(*label)))
            }
            // A fence at invocation scope orders nothing; inexpressible instructions were refused earlier.
            _ => {}
        }
    }

    fn lower_access(&mut self, access: &MemoryAccess, scope: Scope, at: usize, all_decisive: bool) {
        // An address dependency orders nothing in Vulkan, and the address register holds 0.
        let place = MemoryPlace::whole_location(access.place.location, access.place.class);
        let lowered = |kind| {
            let (strength, performer) = (vulkan_access(access.strength, scope), access.performer);
            InstructionKind::Access(MemoryAccess { place, kind, strength, performer })
        };
        match access.kind {
            AccessKind::Load(destinations) => {
                let destinations = destinations.map(|destination| self.lowered_register(destination));
                self.emit(lowered(AccessKind::Load(destinations)));
            }
            AccessKind::Store(values) => {
                let values = values.map(|value| self.lowered_operand(value));
                self.emit(lowered(AccessKind::Store(values)));
            }
            AccessKind::Rmw { destination, operation } => {
                let destination = match destination {
                    Some(destination) => self.lowered_register(destination),
                    None => self.fresh_register(),
                };
                let operation = match operation {
                    RmwOperation::Exchange(value) => RmwOperation::Exchange(self.lowered_operand(value)),
                    RmwOperation::Fetch(operation, value) => {
                        RmwOperation::Fetch(operation, self.lowered_operand(value))
                    }
                    RmwOperation::CompareExchange { compare, value, unequal } => {
                        RmwOperation::CompareExchange {
                            compare: self.lowered_operand(compare),
                            value: self.lowered_operand(value),
                            unequal: vulkan_semantics(unequal.order, scope),
                        }
                    }
                };
                self.emit(lowered(AccessKind::Rmw { destination: Some(destination), operation }));
            }
            AccessKind::Await { destination, value } => {
                let order = access.semantics().order;
                self.await_value(
                    self.lowered_register(destination),
                    value,
                    (place, scope, order),
                    at,
                    all_decisive,
                );
            }
        }
    }

    /// Loads `place` into `own` until it holds the value.
    fn await_value(
        &mut self,
        own: RegisterId,
        value: Operand,
        (place, scope, order): (MemoryPlace, Scope, Order),
        at: usize,
        all_simple: bool,
    ) {
        let mut wanted = self.lowered_operand(value);
        if wanted == Operand::Register(own) {
            let kept = self.fresh_register();
            self.emit_move(kept, wanted);
            wanted = Operand::Register(kept);
        }
        let load = |semantics| InstructionKind::load(own, place, Access::Atomic { scope, semantics });
        if always_terminates(self.hsa, self.id, at, &mut Vec::new()) {
            // The loop only waits, so its loads are relaxed. The next load orders the later accesses.
            let again = self.fresh_label();
            self.emit(InstructionKind::Flow(Flow::Label(again)));
            self.emit(load(Semantics::RELAXED));
            let (left, relation) = (Operand::Register(own), Comparison::NotEqual);
            self.emit(InstructionKind::Flow(Flow::Branch { relation, left, right: wanted, target: again }));
        }
        self.emit(load(vulkan_semantics(order, scope)));
        let constant = match wanted {
            Operand::Constant(constant) => Some(i64::from(constant as u32 as i32)),
            Operand::Register(_) => None,
        };
        if let (Some(constant), true) = (constant, all_simple) {
            self.require_final_value(own, constant);
        }
        if !all_simple || at + 1 < self.thread.instructions.len() {
            let end = match self.end {
                Some(end) => end,
                None => self.fresh_label(),
            };
            self.end = Some(end);
            self.emit(InstructionKind::Flow(Flow::Branch {
                relation: Comparison::NotEqual,
                left: Operand::Register(own),
                right: constant.map_or(wanted, Operand::Constant),
                target: end,
            }));
        }
    }
}

/// The sign bit. Flipping it maps unsigned order to signed order.
const SIGN: u32 = 1 << 31;

/// Returns the Vulkan form of an access; HSA's ordinary accesses become non-private.
fn vulkan_access(access: Access, scope: Scope) -> Access {
    match access {
        Access::Atomic { semantics, .. } => {
            Access::Atomic { scope, semantics: vulkan_semantics(semantics.order, scope) }
        }
        Access::Private | Access::NonPrivate | Access::Coherent { .. } => Access::NonPrivate,
    }
}
