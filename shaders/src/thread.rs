//! The code of one thread: each instruction of the test becomes the SPIR-V instruction with the same meaning.

mod access;

use litmus::{
    ArithmeticOperation, BranchRelation, Compute, Flow, Instruction, InstructionKind, Operand, RegisterId,
    ScalarType, Scope, Semantics, Table, Test, ThreadId,
};
use rspirv::dr;
use rspirv::spirv::{MemorySemantics, Op, Word};
use spirv_reader::{scope_word, semantics_word};

use crate::flow::StructuredStep;
use crate::glsl;
use crate::memory::{AccessTarget, Element, ReferencePath};
use crate::module::Module;
use crate::rules::Rule;
use crate::variant::{MemoryModel, Variant};

/// The value of the jump variable if no more code may run.
const NOWHERE: u32 = u32::MAX;

/// Where the registers of a thread are stored.
pub(crate) enum Registers {
    /// Structured code in one segment: the current value of each register, or `None` for the initial value.
    Values(Table<RegisterId, Option<Word>>),
    /// Function variables.
    Variables {
        /// By register.
        registers: Table<RegisterId, Word>,
        /// The jump variable, if the code needs it.
        jump: Option<Word>,
        /// The variables of loops.
        spin: Option<Spin>,
    },
}

impl Registers {
    /// Registers of code that reads none.
    pub fn none() -> Registers {
        Registers::Values(Table::from_iter([]))
    }
}

/// The variables of a thread with loops.
#[derive(Clone, Copy)]
pub(crate) struct Spin {
    /// One more than the position where the next iteration begins, or 0 if there is none.
    pub again: Word,
    /// Iterations executed.
    pub turns: Word,
    /// 1 if a loop reached its bound.
    pub given_up: Word,
}

/// The context that all threads of a kernel share.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub test: &'a Test,
    pub variant: Variant,
    /// The targets of the paths for the current instance.
    pub targets: &'a [(ReferencePath, AccessTarget)],
    /// The maximum number of iterations of a loop.
    pub loop_bound: u32,
}

/// Emits the code of one thread.
pub(crate) struct ThreadEmitter<'a> {
    pub module: &'a mut Module,
    pub around: Surroundings<'a>,
    pub thread: ThreadId,
    pub registers: &'a mut Registers,
}

impl<'a> ThreadEmitter<'a> {
    /// Gives the register variables their initial values.
    pub fn begin(&mut self) {
        let Registers::Variables { registers, spin, .. } = &self.registers else { return };
        let (variables, spin) = (registers.clone(), *spin);
        for (register, variable) in variables.entries().iter().enumerate() {
            let initial = self.initial(RegisterId(register as u16));
            self.set(*variable, initial);
        }
        if let Some(spin) = spin {
            let zero = self.module.constant(0);
            self.set(spin.given_up, zero);
        }
    }

    fn set(&mut self, variable: Word, value: Word) {
        self.module.effect(Op::Store, [variable, value].map(dr::Operand::IdRef));
    }

    /// Emits a memory barrier.
    pub fn fence(&mut self, scope: Scope, semantics: Semantics) -> Result<(), Rule> {
        let (scope, semantics) = (self.scope(scope)?, self.constant_semantics(semantics_word(semantics)));
        self.module.effect(Op::MemoryBarrier, [scope, semantics]);
        Ok(())
    }

    /// Sets the jump variable to the first position of a segment.
    pub fn begin_segment(&mut self, steps: &[StructuredStep]) {
        if crate::flow::needs_jump_variable(steps)
            && let Registers::Variables { jump: Some(jump), spin, .. } = &self.registers
        {
            let (jump, spin) = (*jump, *spin);
            let mut start = self.module.constant(0);
            if let Some(spin) = spin {
                let nowhere = self.module.constant(NOWHERE);
                let given_up = self.given_up(spin);
                start = self.module.word(Op::Select, &[given_up, nowhere, start]);
            }
            self.set(jump, start);
        }
    }

    fn given_up(&mut self, spin: Spin) -> Word {
        let given_up = self.module.word(Op::Load, &[spin.given_up]);
        let zero = self.module.constant(0);
        self.module.truth(Op::INotEqual, &[given_up, zero])
    }

    /// Returns whether the thread has left its loops, or `None` if it has none.
    pub fn resolved(&mut self) -> Option<Word> {
        let Registers::Variables { spin: Some(spin), .. } = &self.registers else { return None };
        let given_up = self.module.word(Op::Load, &[spin.given_up]);
        let zero = self.module.constant(0);
        Some(self.module.truth(Op::IEqual, &[given_up, zero]))
    }

    /// Emits the steps into the current block, which remains open.
    pub fn sequence(&mut self, steps: &[StructuredStep]) -> Result<(), Rule> {
        for step in steps {
            match step {
                StructuredStep::Do(position) => {
                    if let Some(instruction) = self.instruction_at(*position) {
                        self.instruction(instruction)?;
                    }
                }
                StructuredStep::Select { branch, taken, otherwise } => {
                    let Some(condition) = self.condition_at(*branch)? else { continue };
                    self.select(condition, taken, otherwise)?;
                }
                StructuredStep::Jump { at, to } => self.jump(*at, *to)?,
                StructuredStep::Block { from, body } => {
                    let Registers::Variables { jump: Some(jump), .. } = &self.registers else { continue };
                    let place = self.module.word(Op::Load, &[*jump]);
                    let from = self.module.constant(*from as u32);
                    let reached = self.module.truth(Op::ULessThanEqual, &[place, from]);
                    self.select(reached, body, &[])?;
                }
                // Loops are emitted outside of the code of threads, with all lanes active.
                StructuredStep::Loop(_) => {}
            }
        }
        Ok(())
    }

    /// Sets where the first iteration of a loop begins: at the target of the last jump, or nowhere if no more code
    /// may run.
    pub fn enter_loop(&mut self) {
        let Some((jump, spin)) = self.spin() else { return };
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let place = self.module.word(Op::Load, &[jump]);
        let first = self.module.word(Op::IAdd, &[place, one]);
        self.set(spin.again, first);
        self.set(spin.turns, zero);
    }

    /// Emits the condition of another iteration of the current loop.
    pub fn goes_on(&mut self) -> Option<Word> {
        let (_, spin) = self.spin()?;
        let zero = self.module.constant(0);
        let again = self.module.word(Op::Load, &[spin.again]);
        let turns = self.module.word(Op::Load, &[spin.turns]);
        let bound = self.module.constant(self.around.loop_bound);
        let wanted = self.module.truth(Op::INotEqual, &[again, zero]);
        let granted = self.module.truth(Op::ULessThan, &[turns, bound]);
        Some(self.module.truth(Op::LogicalAnd, &[wanted, granted]))
    }

    /// Emits one iteration of a loop.
    pub fn turn(&mut self, blocks: &[StructuredStep]) -> Result<(), Rule> {
        let Some((jump, spin)) = self.spin() else { return Ok(()) };
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let begins = self.module.word(Op::Load, &[spin.again]);
        let begins = self.module.word(Op::ISub, &[begins, one]);
        self.set(jump, begins);
        self.set(spin.again, zero);
        let made = self.module.word(Op::Load, &[spin.turns]);
        let made = self.module.word(Op::IAdd, &[made, one]);
        self.set(spin.turns, made);
        self.sequence(blocks)
    }

    /// Emits the code after a loop: if it reached its bound, no more code runs.
    pub fn leave_loop(&mut self) {
        let Some((jump, spin)) = self.spin() else { return };
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let again = self.module.word(Op::Load, &[spin.again]);
        let unfinished = self.module.truth(Op::INotEqual, &[again, zero]);
        let before = self.module.word(Op::Load, &[spin.given_up]);
        let given_up = self.module.word(Op::Select, &[unfinished, one, before]);
        self.set(spin.given_up, given_up);
        let nowhere = self.module.constant(NOWHERE);
        let place = self.module.word(Op::Load, &[jump]);
        let place = self.module.word(Op::Select, &[unfinished, nowhere, place]);
        self.set(jump, place);
    }

    /// Returns the jump variable and the variables of loops.
    fn spin(&self) -> Option<(Word, Spin)> {
        match &self.registers {
            Registers::Variables { jump: Some(jump), spin: Some(spin), .. } => Some((*jump, *spin)),
            _ => None,
        }
    }

    pub fn instruction_at(&self, position: usize) -> Option<&'a Instruction> {
        self.around.test.thread(self.thread).instructions.get(position)
    }

    fn select(&mut self, condition: Word, yes: &[StructuredStep], no: &[StructuredStep]) -> Result<(), Rule> {
        let merge = self.module.id();
        let head = self.module.block();
        let label = |module: &mut Module, steps: &[StructuredStep]| {
            if steps.is_empty() { merge } else { module.id() }
        };
        let (yes_label, no_label) = (label(self.module, yes), label(self.module, no));
        self.module.selection_merge(merge);
        self.module.branch_if(condition, yes_label, no_label);
        let before = self.values();
        // The fall-through side comes first, so that blocks are in program order.
        let (no_end, no_values) = self.side(head, no_label, no, merge)?;
        self.set_values(&before);
        let (yes_end, yes_values) = self.side(head, yes_label, yes, merge)?;
        self.module.begin(merge);
        self.merge_values((yes_end, &yes_values), (no_end, &no_values))?;
        Ok(())
    }

    /// Emits one side of a selection; returns its last block and the register values there.
    fn side(
        &mut self,
        head: Word,
        label: Word,
        steps: &[StructuredStep],
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
            Registers::Values(values) => values.entries().to_vec(),
            Registers::Variables { .. } => Vec::new(),
        }
    }

    fn set_values(&mut self, values: &[Option<Word>]) {
        if let Registers::Values(current) = &mut self.registers {
            *current = values.iter().copied().collect();
        }
    }

    /// Selects each register's value by the preceding block.
    fn merge_values(
        &mut self,
        yes: (Word, &[Option<Word>]),
        no: (Word, &[Option<Word>]),
    ) -> Result<(), Rule> {
        for (index, (left, right)) in yes.1.iter().zip(no.1).enumerate() {
            if left == right {
                continue;
            }
            let register = RegisterId(index as u16);
            let [left, right] = [left, right].map(|value| value.unwrap_or_else(|| self.initial(register)));
            let sources = [left, yes.0, right, no.0].map(dr::Operand::IdRef);
            let ty = self.module.integer(self.width(register));
            let merged = self.module.value(Op::Phi, ty, sources);
            self.assign(register, merged)?;
        }
        Ok(())
    }

    fn initial(&mut self, register: RegisterId) -> Word {
        let value = self.around.test.initial_register(self.thread, register);
        self.number(value.0, self.width(register))
    }

    /// Returns the width of a register in the kernel: values under 32 bits are zero-extended to 32.
    pub fn width(&self, register: RegisterId) -> u32 {
        self.around.test.register_type(self.thread, register).bits().max(32)
    }

    fn number(&mut self, value: u64, width: u32) -> Word {
        let ty = self.module.integer(width);
        if width == 64 {
            self.module.constant_of(ty, &[value as u32, (value >> 32) as u32])
        } else {
            self.module.constant_of(ty, &[value as u32])
        }
    }

    /// Returns whether the branch at `position` is taken, or `None` if that is not a branch.
    pub fn condition_at(&mut self, position: usize) -> Result<Option<Word>, Rule> {
        let Some(InstructionKind::Flow(Flow::Branch { relation, left, right, .. })) =
            self.instruction_at(position).map(|instruction| &instruction.kind)
        else {
            return Ok(None);
        };
        self.compared(*relation, *left, *right).map(Some)
    }

    /// Emits whether a relation holds between two operands.
    pub fn compared(
        &mut self,
        relation: BranchRelation,
        left: Operand,
        right: Operand,
    ) -> Result<Word, Rule> {
        let op = match relation {
            BranchRelation::Equal => Op::IEqual,
            BranchRelation::NotEqual => Op::INotEqual,
            BranchRelation::GreaterOrEqual => Op::SGreaterThanEqual,
            BranchRelation::LessOrEqual => Op::SLessThanEqual,
            BranchRelation::Greater => Op::SGreaterThan,
            BranchRelation::Less => Op::SLessThan,
        };
        let bits = self.operand_bits(left).max(self.operand_bits(right));
        let width = bits.max(32);
        let (mut left, mut right) = (self.operand(left, width)?, self.operand(right, width)?);
        if bits < 32 {
            // Shifted to the top, values compare by their own sign bit.
            let shift = self.module.constant(32 - bits);
            [left, right] = [left, right].map(|side| self.module.word(Op::ShiftLeftLogical, &[side, shift]));
        }
        Ok(self.module.truth(op, &[left, right]))
    }

    fn operand_bits(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Constant(_) => 32,
            Operand::Register(register) => self.around.test.register_type(self.thread, register).bits(),
        }
    }

    /// Sets the jump variable to the target of the jump at `position`, if it is taken.
    fn jump(&mut self, position: usize, to: usize) -> Result<(), Rule> {
        let condition = self.condition_at(position)?;
        let Registers::Variables { jump: Some(jump), spin, .. } = &self.registers else { return Ok(()) };
        let (jump, back) = (*jump, spin.filter(|_| to <= position));
        let mut place = self.module.constant(if back.is_some() { NOWHERE } else { to as u32 });
        let mut again = self.module.constant(to as u32 + 1);
        if let Some(condition) = condition {
            // The jump is in an executed block, so the old value of the variable is a position that was
            // reached.
            let before = self.module.word(Op::Load, &[jump]);
            place = self.module.word(Op::Select, &[condition, place, before]);
            if back.is_some() {
                let no = self.module.constant(0);
                again = self.module.word(Op::Select, &[condition, again, no]);
            }
        }
        self.set(jump, place);
        if let Some(spin) = back {
            self.set(spin.again, again);
        }
        Ok(())
    }

    /// Emits an instruction other than a jump, a label or a control barrier.
    pub fn instruction(&mut self, instruction: &Instruction) -> Result<(), Rule> {
        match &instruction.kind {
            InstructionKind::Access(access) => self.access(access)?,
            InstructionKind::Fence { scope, semantics } => self.fence(*scope, *semantics)?,
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let ty = self.around.test.register_type(self.thread, *destination);
                let width = ty.bits().max(32);
                let (left, right) = (self.operand(*left, width)?, self.operand(*right, width)?);
                let result = self.arithmetic(*operation, ty, left, right)?;
                self.assign(*destination, result)?;
            }
            // Jumps and labels are in steps, control barriers end segments, phases are divided at
            // dependencies, and the rest is refused earlier.
            kind => return Err(Rule::Internal(kind.name())),
        }
        Ok(())
    }

    /// Returns the value of a register as a number of this many bits.
    fn value_of(&mut self, register: RegisterId, bits: u32) -> Result<Word, Rule> {
        let value = self.register(register)?;
        if self.width(register) == bits {
            return Ok(value);
        }
        let ty = self.module.integer(bits);
        Ok(self.module.on_ids(Op::UConvert, ty, &[value]))
    }

    fn arithmetic(
        &mut self,
        operation: ArithmeticOperation,
        ty: ScalarType,
        left: Word,
        right: Word,
    ) -> Result<Word, Rule> {
        let width = ty.bits().max(32);
        let integer = self.module.integer(width);
        let op = match operation {
            ArithmeticOperation::Add => Op::IAdd,
            ArithmeticOperation::Subtract => Op::ISub,
            ArithmeticOperation::Multiply => Op::IMul,
            ArithmeticOperation::Divide => return Err(Rule::Division),
            ArithmeticOperation::And => Op::BitwiseAnd,
            ArithmeticOperation::Or => Op::BitwiseOr,
            ArithmeticOperation::Xor => Op::BitwiseXor,
            ArithmeticOperation::Minimum | ArithmeticOperation::Maximum => {
                let (mut low, mut high) = (left, right);
                if ty.bits() < 32 {
                    let shift = self.module.constant(32 - ty.bits());
                    [low, high] =
                        [low, high].map(|side| self.module.word(Op::ShiftLeftLogical, &[side, shift]));
                }
                let less = self
                    .module
                    .truth(if is_signed(ty) { Op::SLessThan } else { Op::ULessThan }, &[low, high]);
                let (yes, no) =
                    if operation == ArithmeticOperation::Minimum { (left, right) } else { (right, left) };
                return Ok(self.module.on_ids(Op::Select, integer, &[less, yes, no]));
            }
        };
        let result = self.module.on_ids(op, integer, &[left, right]);
        if ty.bits() < 32 {
            let mask = self.module.constant((1 << ty.bits()) - 1);
            return Ok(self.module.word(Op::BitwiseAnd, &[result, mask]));
        }
        Ok(result)
    }

    fn scope(&mut self, scope: Scope) -> Result<dr::Operand, Rule> {
        let word = scope_operand(scope, self.around.variant)?;
        Ok(dr::Operand::IdScope(self.module.constant(word)))
    }

    fn atomic_semantics(&mut self, semantics: Semantics) -> dr::Operand {
        let mut word = semantics_word(semantics);
        if self.around.variant.volatile && self.around.variant.model == MemoryModel::Vulkan {
            word |= MemorySemantics::VOLATILE.bits();
        }
        self.constant_semantics(word)
    }

    fn constant_semantics(&mut self, word: u32) -> dr::Operand {
        dr::Operand::IdMemorySemantics(self.module.constant(word))
    }

    /// Returns the value of an operand as a number of this many bits.
    pub fn operand(&mut self, operand: Operand, width: u32) -> Result<Word, Rule> {
        match operand {
            Operand::Constant(constant) => Ok(self.number(constant as u64, width)),
            Operand::Register(register) => self.value_of(register, width),
        }
    }

    /// Returns the current value of a register.
    pub fn register(&mut self, register: RegisterId) -> Result<Word, Rule> {
        match &self.registers {
            Registers::Values(values) => match *values.get(register)? {
                Some(value) => Ok(value),
                None => Ok(self.initial(register)),
            },
            Registers::Variables { registers, .. } => {
                let variable = *registers.get(register)?;
                let ty = self.module.integer(self.width(register));
                Ok(self.module.on_ids(Op::Load, ty, &[variable]))
            }
        }
    }

    /// Sets a register.
    pub fn assign(&mut self, register: RegisterId, value: Word) -> Result<(), Rule> {
        match &mut self.registers {
            Registers::Values(values) => values.set(register, Some(value))?,
            Registers::Variables { registers, .. } => {
                let variable = *registers.get(register)?;
                self.set(variable, value);
            }
        }
        Ok(())
    }
}

/// Returns the SPIR-V scope. Under GLSL450, Device denotes the queue family instance.
pub(crate) fn scope_operand(scope: Scope, variant: Variant) -> Result<u32, Rule> {
    let vulkan = variant.model == MemoryModel::Vulkan;
    let scope = if vulkan { scope } else { glsl::widened(scope) };
    scope_word(scope, vulkan).ok_or(Rule::CrossDeviceScope)
}

fn is_signed(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64)
}

/// Returns the opcode. Integer types of the module are unsigned; the signedness of a minimum or maximum is in
/// the opcode.
fn atomic_op(operation: ArithmeticOperation, ty: ScalarType) -> Result<Op, Rule> {
    if Element::of(ty).is_float() {
        return match operation {
            ArithmeticOperation::Add => Ok(Op::AtomicFAddEXT),
            ArithmeticOperation::Minimum => Ok(Op::AtomicFMinEXT),
            ArithmeticOperation::Maximum => Ok(Op::AtomicFMaxEXT),
            _ => Err(Rule::FloatAtomic),
        };
    }
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
