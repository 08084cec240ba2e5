//! The code of one thread: each instruction of the test becomes the instruction of the same meaning.

use litmus::{
    Access, ArithmeticOperation, BranchRelation, Instruction, InstructionKind, Operand, RegisterId,
    RmwOperation, ScalarType, Scope, Semantics, Test, ThreadId, Value,
};
use rspirv::dr;
use rspirv::spirv::{MemoryAccess, Op, Word};

use crate::flow::Step;
use crate::module::Module;
use crate::rules::Rule;
use crate::semantics::{scope_word, semantics_word};

/// Where the registers of a thread live.
pub(crate) enum Registers {
    /// Nested code in one segment: the value of each register at this point, the initial one where there is none.
    Values(Vec<Option<Word>>),
    /// Function variables, and the one that holds the place of the last jump where the code needs it.
    Variables {
        /// By register.
        registers: Vec<Word>,
        /// The jump variable.
        jump: Option<Word>,
    },
}

/// Emits the code of one thread.
pub(crate) struct ThreadCode<'a> {
    pub module: &'a mut Module,
    pub test: &'a Test,
    pub thread: ThreadId,
    /// Pointers to the locations of the instance at hand, by [`litmus::LocationId`].
    pub pointers: &'a [Option<Word>],
    pub registers: &'a mut Registers,
}

impl<'a> ThreadCode<'a> {
    /// Gives the register variables their initial values.
    pub fn begin(&mut self) {
        let Registers::Variables { registers, .. } = &self.registers else { return };
        let variables = registers.clone();
        for (register, variable) in variables.iter().enumerate() {
            let initial = self.initial(RegisterId(register as u16));
            self.module.effect(Op::Store, [*variable, initial].map(dr::Operand::IdRef));
        }
    }

    /// A memory barrier.
    pub fn fence(&mut self, scope: Scope, semantics: Semantics) -> Result<(), Rule> {
        let (scope, semantics) = (self.scope(scope)?, self.semantics(semantics));
        self.module.effect(Op::MemoryBarrier, [scope, semantics]);
        Ok(())
    }

    /// The steps, in a block that is open before and after.
    pub fn steps(&mut self, steps: &[Step]) -> Result<(), Rule> {
        if crate::flow::needs_jump_variable(steps)
            && let Registers::Variables { jump: Some(jump), .. } = &self.registers
        {
            let nowhere = self.module.constant(0);
            self.module.effect(Op::Store, [*jump, nowhere].map(dr::Operand::IdRef));
        }
        self.sequence(steps)
    }

    fn sequence(&mut self, steps: &[Step]) -> Result<(), Rule> {
        for step in steps {
            match step {
                Step::Do(position) => {
                    if let Some(instruction) = self.instruction_at(*position) {
                        self.instruction(instruction)?;
                    }
                }
                Step::Select { branch, taken, otherwise } => {
                    let Some(condition) = self.condition_at(*branch) else { continue };
                    self.select(condition, taken, otherwise)?;
                }
                Step::Jump { at, to } => self.jump(*at, *to),
                Step::Block { from, body } => {
                    let Registers::Variables { jump: Some(jump), .. } = &self.registers else { continue };
                    let place = self.module.word(Op::Load, &[*jump]);
                    let from = self.module.constant(*from as u32);
                    let reached = self.module.truth(Op::ULessThanEqual, &[place, from]);
                    self.select(reached, body, &[])?;
                }
            }
        }
        Ok(())
    }

    fn instruction_at(&self, position: usize) -> Option<&'a Instruction> {
        self.test.thread(self.thread).instructions.get(position)
    }

    fn select(&mut self, condition: Word, yes: &[Step], no: &[Step]) -> Result<(), Rule> {
        let merge = self.module.id();
        let head = self.module.block();
        let label = |module: &mut Module, steps: &[Step]| if steps.is_empty() { merge } else { module.id() };
        let (yes_label, no_label) = (label(self.module, yes), label(self.module, no));
        self.module.selection_merge(merge);
        self.module.branch_if(condition, yes_label, no_label);
        let before = self.values();
        // What is not jumped over comes first, so that blocks stand in the order of the program.
        let (no_end, no_values) = self.side(head, no_label, no, merge)?;
        self.set_values(&before);
        let (yes_end, yes_values) = self.side(head, yes_label, yes, merge)?;
        self.module.begin(merge);
        self.merge_values((yes_end, &yes_values), (no_end, &no_values));
        Ok(())
    }

    /// One side of a selection: where execution leaves it, and with which register values.
    fn side(
        &mut self,
        head: Word,
        label: Word,
        steps: &[Step],
        merge: Word,
    ) -> Result<(Word, Vec<Option<Word>>), Rule> {
        if label == merge {
            return Ok((head, self.values()));
        }
        self.module.begin(label);
        self.sequence(steps)?;
        let end = self.module.block();
        self.module.branch(merge);
        Ok((end, self.values()))
    }

    fn values(&self) -> Vec<Option<Word>> {
        match &self.registers {
            Registers::Values(values) => values.clone(),
            Registers::Variables { .. } => Vec::new(),
        }
    }

    fn set_values(&mut self, values: &[Option<Word>]) {
        if let Registers::Values(current) = &mut self.registers {
            current.clone_from_slice(values);
        }
    }

    /// Picks each register's value by the side that execution came from.
    fn merge_values(&mut self, yes: (Word, &[Option<Word>]), no: (Word, &[Option<Word>])) {
        for (index, (left, right)) in yes.1.iter().zip(no.1).enumerate() {
            if left == right {
                continue;
            }
            let register = RegisterId(index as u16);
            let [left, right] = [left, right].map(|value| value.unwrap_or_else(|| self.initial(register)));
            let sources = [left, yes.0, right, no.0].map(dr::Operand::IdRef);
            let merged = self.module.value(Op::Phi, self.module.u32, sources);
            self.assign(register, merged);
        }
    }

    fn initial(&mut self, register: RegisterId) -> Word {
        self.module.constant(low_word(self.test.initial_register(self.thread, register)))
    }

    /// Whether the branch at `position` is taken; `None` where there is no branch.
    fn condition_at(&mut self, position: usize) -> Option<Word> {
        let InstructionKind::Branch { relation, left, right, .. } = self.instruction_at(position)?.kind
        else {
            return None;
        };
        let op = match relation {
            BranchRelation::Equal => Op::IEqual,
            BranchRelation::NotEqual => Op::INotEqual,
            BranchRelation::GreaterOrEqual => Op::SGreaterThanEqual,
            BranchRelation::LessOrEqual => Op::SLessThanEqual,
            BranchRelation::Greater => Op::SGreaterThan,
            BranchRelation::Less => Op::SLessThan,
        };
        let (left, right) = (self.operand(left), self.operand(right));
        Some(self.module.truth(op, &[left, right]))
    }

    /// Notes where the jump at `position` goes, if it is taken.
    fn jump(&mut self, position: usize, to: usize) {
        let condition = self.condition_at(position);
        let Registers::Variables { jump: Some(jump), .. } = &self.registers else { return };
        let mut place = self.module.constant(to as u32);
        if let Some(condition) = condition {
            // A jump runs only where its block does, so the place before it is one that was reached.
            let before = self.module.word(Op::Load, &[*jump]);
            place = self.module.word(Op::Select, &[condition, place, before]);
        }
        self.module.effect(Op::Store, [*jump, place].map(dr::Operand::IdRef));
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<(), Rule> {
        match &instruction.kind {
            InstructionKind::Load { destination, location, access, .. } => {
                let pointer = self.pointer(*location);
                let loaded = match access {
                    Access::Atomic { scope, semantics } => {
                        let (scope, semantics) = (self.scope(*scope)?, self.semantics(*semantics));
                        self.module.value(
                            Op::AtomicLoad,
                            self.module.u32,
                            [dr::Operand::IdRef(pointer), scope, semantics],
                        )
                    }
                    plain => {
                        let mut operands = vec![dr::Operand::IdRef(pointer)];
                        operands.extend(self.memory_access(plain, MemoryAccess::MAKE_POINTER_VISIBLE)?);
                        self.module.value(Op::Load, self.module.u32, operands)
                    }
                };
                self.assign(*destination, loaded);
            }
            InstructionKind::Store { location, value, access, .. } => {
                let (pointer, value) = (self.pointer(*location), self.operand(*value));
                match access {
                    Access::Atomic { scope, semantics } => {
                        let (scope, semantics) = (self.scope(*scope)?, self.semantics(*semantics));
                        let operands =
                            [dr::Operand::IdRef(pointer), scope, semantics, dr::Operand::IdRef(value)];
                        self.module.effect(Op::AtomicStore, operands);
                    }
                    plain => {
                        let mut operands = vec![dr::Operand::IdRef(pointer), dr::Operand::IdRef(value)];
                        operands.extend(self.memory_access(plain, MemoryAccess::MAKE_POINTER_AVAILABLE)?);
                        self.module.effect(Op::Store, operands);
                    }
                }
            }
            InstructionKind::Rmw { destination, location, scalar, operation, scope, semantics, .. } => {
                let ty = scalar.unwrap_or(self.test.location(*location).scalar_type());
                let mut operands = vec![
                    dr::Operand::IdRef(self.pointer(*location)),
                    self.scope(*scope)?,
                    self.semantics(*semantics),
                ];
                let op = match operation {
                    RmwOperation::Exchange(value) => {
                        operands.push(dr::Operand::IdRef(self.operand(*value)));
                        Op::AtomicExchange
                    }
                    RmwOperation::Fetch(arithmetic, value) => {
                        operands.push(dr::Operand::IdRef(self.operand(*value)));
                        atomic_op(*arithmetic, ty)?
                    }
                    RmwOperation::CompareExchange { compare, value, unequal } => {
                        operands.push(self.semantics(*unequal));
                        operands.push(dr::Operand::IdRef(self.operand(*value)));
                        operands.push(dr::Operand::IdRef(self.operand(*compare)));
                        Op::AtomicCompareExchange
                    }
                };
                let old = self.module.value(op, self.module.u32, operands);
                self.assign(*destination, old);
            }
            InstructionKind::Fence { scope, semantics } => self.fence(*scope, *semantics)?,
            InstructionKind::Arithmetic { destination, operation, left, right } => {
                let ty = self.test.register_type(self.thread, *destination);
                let (left, right) = (self.operand(*left), self.operand(*right));
                let result = self.arithmetic(*operation, ty, left, right)?;
                self.assign(*destination, result);
            }
            // Segments end at control barriers, steps hold jumps and labels; the rest is refused before.
            InstructionKind::ControlBarrier(_)
            | InstructionKind::AvailableToDevice
            | InstructionKind::VisibleFromDevice
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Label(_)
            | InstructionKind::Goto(_)
            | InstructionKind::Branch { .. }
            | InstructionKind::Await { .. }
            | InstructionKind::Update { .. }
            | InstructionKind::Addressed { .. }
            | InstructionKind::Move { .. }
            | InstructionKind::Compare { .. }
            | InstructionKind::BranchIf { .. } => {}
        }
        Ok(())
    }

    fn arithmetic(
        &mut self,
        operation: ArithmeticOperation,
        ty: ScalarType,
        left: Word,
        right: Word,
    ) -> Result<Word, Rule> {
        let signed = is_signed(ty);
        let op = match operation {
            ArithmeticOperation::Add => Op::IAdd,
            ArithmeticOperation::Subtract => Op::ISub,
            ArithmeticOperation::Multiply => Op::IMul,
            ArithmeticOperation::Divide => return Err(Rule::Division),
            ArithmeticOperation::And => Op::BitwiseAnd,
            ArithmeticOperation::Or => Op::BitwiseOr,
            ArithmeticOperation::Xor => Op::BitwiseXor,
            ArithmeticOperation::Minimum | ArithmeticOperation::Maximum => {
                let less =
                    self.module.truth(if signed { Op::SLessThan } else { Op::ULessThan }, &[left, right]);
                let (yes, no) =
                    if operation == ArithmeticOperation::Minimum { (left, right) } else { (right, left) };
                return Ok(self.module.word(Op::Select, &[less, yes, no]));
            }
        };
        Ok(self.module.word(op, &[left, right]))
    }

    /// The memory operands of a plain access: none for a private one.
    fn memory_access(&mut self, access: &Access, coherent: MemoryAccess) -> Result<Vec<dr::Operand>, Rule> {
        Ok(match access {
            Access::Private | Access::Atomic { .. } => Vec::new(),
            Access::NonPrivate => vec![dr::Operand::MemoryAccess(MemoryAccess::NON_PRIVATE_POINTER)],
            Access::Coherent { scope } => {
                vec![
                    dr::Operand::MemoryAccess(coherent | MemoryAccess::NON_PRIVATE_POINTER),
                    self.scope(*scope)?,
                ]
            }
        })
    }

    fn scope(&mut self, scope: Scope) -> Result<dr::Operand, Rule> {
        let word = scope_word(scope).ok_or(Rule::CrossDeviceScope)?;
        Ok(dr::Operand::IdScope(self.module.constant(word as u32)))
    }

    fn semantics(&mut self, semantics: Semantics) -> dr::Operand {
        dr::Operand::IdMemorySemantics(self.module.constant(semantics_word(semantics)))
    }

    fn pointer(&self, location: litmus::LocationId) -> Word {
        self.pointers.get(usize::from(location.0)).copied().flatten().unwrap_or_default()
    }

    fn operand(&mut self, operand: Operand) -> Word {
        match operand {
            Operand::Constant(constant) => {
                self.module.constant(low_word(Value::from_constant(constant, ScalarType::U32)))
            }
            Operand::Register(register) => self.register(register),
        }
    }

    /// The value of a register at this point.
    pub fn register(&mut self, register: RegisterId) -> Word {
        let index = usize::from(register.0);
        match &self.registers {
            Registers::Values(values) => match values.get(index).copied().flatten() {
                Some(value) => value,
                None => self.initial(register),
            },
            Registers::Variables { registers, .. } => {
                let variable = registers.get(index).copied().unwrap_or_default();
                self.module.word(Op::Load, &[variable])
            }
        }
    }

    fn assign(&mut self, register: RegisterId, value: Word) {
        let index = usize::from(register.0);
        match &mut self.registers {
            Registers::Values(values) => {
                if let Some(slot) = values.get_mut(index) {
                    *slot = Some(value);
                }
            }
            Registers::Variables { registers, .. } => {
                let variable = registers.get(index).copied().unwrap_or_default();
                self.module.effect(Op::Store, [variable, value].map(dr::Operand::IdRef));
            }
        }
    }
}

/// All values here have 32 bits at most.
pub(crate) fn low_word(value: Value) -> u32 {
    value.0 as u32
}

fn is_signed(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64)
}

/// Words are unsigned in the module's types; SPIR-V takes the sign of a minimum or maximum from the instruction alone.
fn atomic_op(operation: ArithmeticOperation, ty: ScalarType) -> Result<Op, Rule> {
    Ok(match (operation, is_signed(ty)) {
        (ArithmeticOperation::Add, _) => Op::AtomicIAdd,
        (ArithmeticOperation::Subtract, _) => Op::AtomicISub,
        (ArithmeticOperation::And, _) => Op::AtomicAnd,
        (ArithmeticOperation::Or, _) => Op::AtomicOr,
        (ArithmeticOperation::Xor, _) => Op::AtomicXor,
        (ArithmeticOperation::Minimum, false) => Op::AtomicUMin,
        (ArithmeticOperation::Minimum, true) => Op::AtomicSMin,
        (ArithmeticOperation::Maximum, false) => Op::AtomicUMax,
        (ArithmeticOperation::Maximum, true) => Op::AtomicSMax,
        (ArithmeticOperation::Multiply | ArithmeticOperation::Divide, _) => {
            return Err(Rule::AtomicArithmetic(operation));
        }
    })
}
