//! The code of one thread: each instruction of the test becomes the SPIR-V instruction with the same meaning.

mod access;

use litmus::{
    ArithmeticOperation, Comparison, Compute, Flow, Instruction, InstructionKind, Operand, RegisterId,
    ScalarType, Scope, Semantics, Table, Test, ThreadId,
};
use rspirv::dr;
use rspirv::spirv::{MemorySemantics, Op, Word};
use spirv_reader::{scope_word, semantics_word};

use crate::flow::StructuredStep;
use crate::glsl;
use crate::memory::{AccessTarget, ElementType, ReferencePath};
use crate::module::ModuleBuilder;
use crate::rules::Rule;
use crate::variant::{MemoryModel, Variant};

/// The value of the jump variable after the last position: no more code may run.
const NO_POSITION: u32 = u32::MAX;

/// Where the registers of a thread are stored.
pub(crate) enum Registers {
    /// Structured code in one segment: the current value of each register, or `None` for the initial value.
    Values(Table<RegisterId, Option<Word>>),
    Variables {
        registers: Table<RegisterId, Word>,
        /// The jump variable, if the code needs it.
        jump: Option<Word>,
        loop_variables: Option<LoopVariables>,
    },
}

impl Registers {
    /// Registers of code that reads none.
    pub fn empty() -> Registers {
        Registers::Values(Table::from_iter([]))
    }
}

/// The variables of a thread with loops.
#[derive(Clone, Copy)]
pub(crate) struct LoopVariables {
    /// One more than the position where the next iteration begins, or 0 if there is none.
    pub next_start: Word,
    pub iterations: Word,
    /// 1 if a loop reached its bound.
    pub is_bound_reached: Word,
}

/// The context that all threads of a kernel share.
#[derive(Clone, Copy)]
pub(crate) struct ThreadContext<'a> {
    pub test: &'a Test,
    pub variant: Variant,
    /// The targets of the paths for the current instance.
    pub targets: &'a [(ReferencePath, AccessTarget)],
    /// The maximum number of iterations of a loop.
    pub loop_bound: u32,
}

/// Emits the code of one thread.
pub(crate) struct ThreadEmitter<'a> {
    pub module: &'a mut ModuleBuilder,
    pub context: ThreadContext<'a>,
    pub thread: ThreadId,
    pub registers: &'a mut Registers,
}

impl<'a> ThreadEmitter<'a> {
    /// Gives the register variables their initial values.
    pub fn initialize_registers(&mut self) {
        let Registers::Variables { registers, loop_variables: spin, .. } = &self.registers else { return };
        let (variables, loop_variables) = (registers.clone(), *spin);
        for (register, variable) in variables.entries().iter().enumerate() {
            let initial = self.initial_value(RegisterId(register as u16));
            self.module.store(*variable, initial);
        }
        if let Some(spin) = loop_variables {
            let zero = self.module.constant(0);
            self.module.store(spin.is_bound_reached, zero);
        }
    }

    /// Emits a memory barrier.
    pub fn emit_fence(&mut self, scope: Scope, semantics: Semantics) -> Result<(), Rule> {
        let (scope, semantics) =
            (self.scope_id_operand(scope)?, self.constant_semantics(semantics_word(semantics)));
        self.module.emit_void(Op::MemoryBarrier, [scope, semantics]);
        Ok(())
    }

    /// Sets the jump variable to the first position of a segment.
    pub fn begin_segment(&mut self, steps: &[StructuredStep]) {
        if crate::flow::needs_jump_variable(steps)
            && let Registers::Variables { jump: Some(jump), loop_variables: spin, .. } = &self.registers
        {
            let (jump, loop_variables) = (*jump, *spin);
            let mut start = self.module.constant(0);
            if let Some(spin) = loop_variables {
                let no_position = self.module.constant(NO_POSITION);
                let is_bound_reached = self.emit_is_bound_reached(spin);
                start = self.module.emit_word(Op::Select, &[is_bound_reached, no_position, start]);
            }
            self.module.store(jump, start);
        }
    }

    fn emit_is_bound_reached(&mut self, loop_variables: LoopVariables) -> Word {
        let is_bound_reached = self.module.emit_word(Op::Load, &[loop_variables.is_bound_reached]);
        let zero = self.module.constant(0);
        self.module.emit_bool(Op::INotEqual, &[is_bound_reached, zero])
    }

    /// Emits the condition that the thread has left its loops; `None` without loops.
    pub fn emit_is_resolved(&mut self) -> Option<Word> {
        let Registers::Variables { loop_variables: Some(spin), .. } = &self.registers else { return None };
        let is_bound_reached = self.module.emit_word(Op::Load, &[spin.is_bound_reached]);
        let zero = self.module.constant(0);
        Some(self.module.emit_bool(Op::IEqual, &[is_bound_reached, zero]))
    }

    /// Emits the steps into the current block, which remains open.
    pub fn emit_steps(&mut self, steps: &[StructuredStep]) -> Result<(), Rule> {
        for step in steps {
            match step {
                StructuredStep::Execute(position) => {
                    if let Some(instruction) = self.instruction_at(*position) {
                        self.emit_instruction(instruction)?;
                    }
                }
                StructuredStep::Select { branch, taken, otherwise } => {
                    let Some(condition) = self.condition_at(*branch)? else { continue };
                    self.emit_selection(condition, taken, otherwise)?;
                }
                StructuredStep::Jump { at, to } => self.emit_jump(*at, *to)?,
                StructuredStep::Block { from, body } => {
                    let Registers::Variables { jump: Some(jump), .. } = &self.registers else { continue };
                    let place = self.module.emit_word(Op::Load, &[*jump]);
                    let from = self.module.constant(*from as u32);
                    let reached = self.module.emit_bool(Op::ULessThanEqual, &[place, from]);
                    self.emit_selection(reached, body, &[])?;
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
        let Some((jump, loop_variables)) = self.loop_variables() else { return };
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let place = self.module.emit_word(Op::Load, &[jump]);
        let first = self.module.emit_word(Op::IAdd, &[place, one]);
        self.module.store(loop_variables.next_start, first);
        self.module.store(loop_variables.iterations, zero);
    }

    /// Emits the condition of another iteration of the current loop.
    pub fn emit_loop_condition(&mut self) -> Option<Word> {
        let (_, loop_variables) = self.loop_variables()?;
        let zero = self.module.constant(0);
        let next_start = self.module.emit_word(Op::Load, &[loop_variables.next_start]);
        let iterations = self.module.emit_word(Op::Load, &[loop_variables.iterations]);
        let bound = self.module.constant(self.context.loop_bound);
        let has_next = self.module.emit_bool(Op::INotEqual, &[next_start, zero]);
        let is_below_bound = self.module.emit_bool(Op::ULessThan, &[iterations, bound]);
        Some(self.module.emit_bool(Op::LogicalAnd, &[has_next, is_below_bound]))
    }

    /// Emits one iteration of a loop.
    pub fn emit_iteration(&mut self, blocks: &[StructuredStep]) -> Result<(), Rule> {
        let Some((jump, loop_variables)) = self.loop_variables() else { return Ok(()) };
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let start = self.module.emit_word(Op::Load, &[loop_variables.next_start]);
        let start = self.module.emit_word(Op::ISub, &[start, one]);
        self.module.store(jump, start);
        self.module.store(loop_variables.next_start, zero);
        let iterations = self.module.emit_word(Op::Load, &[loop_variables.iterations]);
        let iterations = self.module.emit_word(Op::IAdd, &[iterations, one]);
        self.module.store(loop_variables.iterations, iterations);
        self.emit_steps(blocks)
    }

    /// Emits the code after a loop: if it reached its bound, no more code runs.
    pub fn leave_loop(&mut self) {
        let Some((jump, loop_variables)) = self.loop_variables() else { return };
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let next_start = self.module.emit_word(Op::Load, &[loop_variables.next_start]);
        let is_unfinished = self.module.emit_bool(Op::INotEqual, &[next_start, zero]);
        let before = self.module.emit_word(Op::Load, &[loop_variables.is_bound_reached]);
        let is_bound_reached = self.module.emit_word(Op::Select, &[is_unfinished, one, before]);
        self.module.store(loop_variables.is_bound_reached, is_bound_reached);
        let no_position = self.module.constant(NO_POSITION);
        let place = self.module.emit_word(Op::Load, &[jump]);
        let place = self.module.emit_word(Op::Select, &[is_unfinished, no_position, place]);
        self.module.store(jump, place);
    }

    /// Returns the jump variable and the variables of loops.
    fn loop_variables(&self) -> Option<(Word, LoopVariables)> {
        match &self.registers {
            Registers::Variables { jump: Some(jump), loop_variables: Some(spin), .. } => Some((*jump, *spin)),
            _ => None,
        }
    }

    pub fn instruction_at(&self, position: usize) -> Option<&'a Instruction> {
        self.context.test.thread(self.thread).instructions.get(position)
    }

    fn emit_selection(
        &mut self,
        condition: Word,
        yes: &[StructuredStep],
        no: &[StructuredStep],
    ) -> Result<(), Rule> {
        let merge = self.module.id();
        let head = self.module.current_block();
        let label = |module: &mut ModuleBuilder, steps: &[StructuredStep]| {
            if steps.is_empty() { merge } else { module.id() }
        };
        let (yes_label, no_label) = (label(self.module, yes), label(self.module, no));
        self.module.selection_merge(merge);
        self.module.branch_if(condition, yes_label, no_label);
        let before = self.register_values();
        // The fall-through side comes first, so that blocks are in program order.
        let (no_end, no_values) = self.emit_branch_side(head, no_label, no, merge)?;
        self.set_register_values(&before);
        let (yes_end, yes_values) = self.emit_branch_side(head, yes_label, yes, merge)?;
        self.module.begin_block(merge);
        self.merge_values((yes_end, &yes_values), (no_end, &no_values))?;
        Ok(())
    }

    /// Emits one side of a selection; returns its last block and the register values there.
    fn emit_branch_side(
        &mut self,
        head: Word,
        label: Word,
        steps: &[StructuredStep],
        merge: Word,
    ) -> Result<(Word, Vec<Option<Word>>), Rule> {
        if label == merge {
            return Ok((head, self.register_values()));
        }
        self.module.begin_block(label);
        self.emit_steps(steps)?;
        let end = self.module.current_block();
        self.module.branch(merge);
        Ok((end, self.register_values()))
    }

    fn register_values(&self) -> Vec<Option<Word>> {
        match &self.registers {
            Registers::Values(values) => values.entries().to_vec(),
            Registers::Variables { .. } => Vec::new(),
        }
    }

    fn set_register_values(&mut self, values: &[Option<Word>]) {
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
            let [left, right] =
                [left, right].map(|value| value.unwrap_or_else(|| self.initial_value(register)));
            let sources = [left, yes.0, right, no.0].map(dr::Operand::IdRef);
            let ty = self.module.type_int(self.register_width(register));
            let merged = self.module.emit_value(Op::Phi, ty, sources);
            self.assign_register(register, merged)?;
        }
        Ok(())
    }

    fn initial_value(&mut self, register: RegisterId) -> Word {
        let value = self.context.test.initial_register(self.thread, register);
        self.integer_constant(value.0, self.register_width(register))
    }

    /// Returns the width of a register in the kernel: values under 32 bits are zero-extended to 32.
    pub fn register_width(&self, register: RegisterId) -> u32 {
        self.context.test.register_type(self.thread, register).bits().max(32)
    }

    fn integer_constant(&mut self, value: u64, width: u32) -> Word {
        let ty = self.module.type_int(width);
        if width == 64 {
            self.module.typed_constant(ty, &[value as u32, (value >> 32) as u32])
        } else {
            self.module.typed_constant(ty, &[value as u32])
        }
    }

    /// Emits the condition of the branch at `position`; `None` if it is not a branch.
    pub fn condition_at(&mut self, position: usize) -> Result<Option<Word>, Rule> {
        let Some(InstructionKind::Flow(Flow::Branch { relation, left, right, .. })) =
            self.instruction_at(position).map(|instruction| &instruction.kind)
        else {
            return Ok(None);
        };
        self.emit_comparison(*relation, *left, *right).map(Some)
    }

    /// Emits a comparison of two operands.
    pub fn emit_comparison(
        &mut self,
        relation: Comparison,
        left: Operand,
        right: Operand,
    ) -> Result<Word, Rule> {
        let op = match relation {
            Comparison::Equal => Op::IEqual,
            Comparison::NotEqual => Op::INotEqual,
            Comparison::GreaterOrEqual => Op::SGreaterThanEqual,
            Comparison::LessOrEqual => Op::SLessThanEqual,
            Comparison::Greater => Op::SGreaterThan,
            Comparison::Less => Op::SLessThan,
        };
        let bits = self.operand_bits(left).max(self.operand_bits(right));
        let width = bits.max(32);
        let (mut left, mut right) = (self.operand_value(left, width)?, self.operand_value(right, width)?);
        if bits < 32 {
            // Shifted to the top, values compare by their own sign bit.
            let shift = self.module.constant(32 - bits);
            [left, right] =
                [left, right].map(|side| self.module.emit_word(Op::ShiftLeftLogical, &[side, shift]));
        }
        Ok(self.module.emit_bool(op, &[left, right]))
    }

    fn operand_bits(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Constant(_) => 32,
            Operand::Register(register) => self.context.test.register_type(self.thread, register).bits(),
        }
    }

    /// Sets the jump variable to the target of the jump at `position`, if it is taken.
    fn emit_jump(&mut self, position: usize, to: usize) -> Result<(), Rule> {
        let condition = self.condition_at(position)?;
        let Registers::Variables { jump: Some(jump), loop_variables: spin, .. } = &self.registers else {
            return Ok(());
        };
        let (jump, backward) = (*jump, spin.filter(|_| to <= position));
        let mut place = self.module.constant(if backward.is_some() { NO_POSITION } else { to as u32 });
        let mut next_start = self.module.constant(to as u32 + 1);
        if let Some(condition) = condition {
            // The jump is in an executed block, so the old value of the variable is a position that was
            // reached.
            let before = self.module.emit_word(Op::Load, &[jump]);
            place = self.module.emit_word(Op::Select, &[condition, place, before]);
            if backward.is_some() {
                let no = self.module.constant(0);
                next_start = self.module.emit_word(Op::Select, &[condition, next_start, no]);
            }
        }
        self.module.store(jump, place);
        if let Some(spin) = backward {
            self.module.store(spin.next_start, next_start);
        }
        Ok(())
    }

    /// Emits an instruction other than a jump, a label or a control barrier.
    pub fn emit_instruction(&mut self, instruction: &Instruction) -> Result<(), Rule> {
        match &instruction.kind {
            InstructionKind::Access(access) => self.emit_access(access)?,
            InstructionKind::Fence { scope, semantics } => self.emit_fence(*scope, *semantics)?,
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let ty = self.context.test.register_type(self.thread, *destination);
                let width = ty.bits().max(32);
                let (left, right) = (self.operand_value(*left, width)?, self.operand_value(*right, width)?);
                let result = self.emit_arithmetic(*operation, ty, left, right)?;
                self.assign_register(*destination, result)?;
            }
            // Jumps and labels are in steps, control barriers end segments, phases are divided at
            // dependencies, and the rest is refused earlier.
            kind => return Err(Rule::Internal(kind.name())),
        }
        Ok(())
    }

    /// Returns the value of a register as a number of this many bits.
    fn register_value_as(&mut self, register: RegisterId, bits: u32) -> Result<Word, Rule> {
        let value = self.register_value(register)?;
        if self.register_width(register) == bits {
            return Ok(value);
        }
        let ty = self.module.type_int(bits);
        Ok(self.module.emit_on_ids(Op::UConvert, ty, &[value]))
    }

    fn emit_arithmetic(
        &mut self,
        operation: ArithmeticOperation,
        ty: ScalarType,
        left: Word,
        right: Word,
    ) -> Result<Word, Rule> {
        let width = ty.bits().max(32);
        let integer = self.module.type_int(width);
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
                        [low, high].map(|side| self.module.emit_word(Op::ShiftLeftLogical, &[side, shift]));
                }
                let less = self
                    .module
                    .emit_bool(if is_signed(ty) { Op::SLessThan } else { Op::ULessThan }, &[low, high]);
                let (yes, no) =
                    if operation == ArithmeticOperation::Minimum { (left, right) } else { (right, left) };
                return Ok(self.module.emit_on_ids(Op::Select, integer, &[less, yes, no]));
            }
        };
        let result = self.module.emit_on_ids(op, integer, &[left, right]);
        if ty.bits() < 32 {
            let mask = self.module.constant((1 << ty.bits()) - 1);
            return Ok(self.module.emit_word(Op::BitwiseAnd, &[result, mask]));
        }
        Ok(result)
    }

    fn scope_id_operand(&mut self, scope: Scope) -> Result<dr::Operand, Rule> {
        let word = scope_operand(scope, self.context.variant)?;
        Ok(dr::Operand::IdScope(self.module.constant(word)))
    }

    fn atomic_semantics(&mut self, semantics: Semantics) -> dr::Operand {
        let mut word = semantics_word(semantics);
        if self.context.variant.volatile && self.context.variant.model == MemoryModel::Vulkan {
            word |= MemorySemantics::VOLATILE.bits();
        }
        self.constant_semantics(word)
    }

    fn constant_semantics(&mut self, word: u32) -> dr::Operand {
        dr::Operand::IdMemorySemantics(self.module.constant(word))
    }

    /// Returns the value of an operand as a number of this many bits.
    pub fn operand_value(&mut self, operand: Operand, width: u32) -> Result<Word, Rule> {
        match operand {
            Operand::Constant(constant) => Ok(self.integer_constant(constant as u64, width)),
            Operand::Register(register) => self.register_value_as(register, width),
        }
    }

    /// Returns the current value of a register.
    pub fn register_value(&mut self, register: RegisterId) -> Result<Word, Rule> {
        match &self.registers {
            Registers::Values(values) => match *values.get(register)? {
                Some(value) => Ok(value),
                None => Ok(self.initial_value(register)),
            },
            Registers::Variables { registers, .. } => {
                let variable = *registers.get(register)?;
                let ty = self.module.type_int(self.register_width(register));
                Ok(self.module.emit_on_ids(Op::Load, ty, &[variable]))
            }
        }
    }

    pub fn assign_register(&mut self, register: RegisterId, value: Word) -> Result<(), Rule> {
        match &mut self.registers {
            Registers::Values(values) => values.set(register, Some(value))?,
            Registers::Variables { registers, .. } => {
                let variable = *registers.get(register)?;
                self.module.store(variable, value);
            }
        }
        Ok(())
    }
}

/// Returns the SPIR-V scope. Under GLSL450, Device denotes the queue family instance.
pub(crate) fn scope_operand(scope: Scope, variant: Variant) -> Result<u32, Rule> {
    let vulkan = variant.model == MemoryModel::Vulkan;
    let scope = if vulkan { scope } else { glsl::widen_scope(scope) };
    scope_word(scope, vulkan).ok_or(Rule::CrossDeviceScope)
}

fn is_signed(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64)
}

/// Returns the opcode. Integer types of the module are unsigned; the signedness of a minimum or maximum is in
/// the opcode.
fn atomic_op(operation: ArithmeticOperation, ty: ScalarType) -> Result<Op, Rule> {
    if ElementType::from_scalar(ty).is_float() {
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
        (ArithmeticOperation::Multiply, _) => return Err(Rule::AtomicMultiply),
        (ArithmeticOperation::Divide, _) => return Err(Rule::AtomicDivide),
    })
}
