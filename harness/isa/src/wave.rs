//! Symbolic execution of one wave: evaluates all computations that do not depend on memory.
//!
//! Registers hold constants or expressions over loaded values. If an instruction needs an unknown condition,
//! the code branches on it. The result is a tree of accesses, waits and barriers that is the same for every
//! interleaving and placement. Bounds: [`MAX_NODES`] and [`MAX_PATH_LENGTH`].

mod access;
mod arithmetic;
mod counters;

use crate::alu::AluOperation;
use crate::code::{WaveCode, WaveExpression, WaveStep, WaveValue};
use crate::entry::{EntryValue, infer_entry};
use crate::facts::{FactTable, Profile};
use crate::family::Generation;
use crate::opcode::{JumpCondition, Opcode};
use crate::question::{Hazard, MachineKernel, Unsupported};
use crate::text::{MachineInstruction, MachineOperand, RegisterRange, special};
use counters::OutstandingOperation;

/// The maximum number of nodes of a tree.
const MAX_NODES: usize = 20_000;
/// The maximum number of instructions on one path; a longer path is treated as a loop.
const MAX_PATH_LENGTH: u32 = 20_000;
/// The content of unwritten bytes of a register, a value that no test writes.
const UNWRITTEN_REGISTER: u32 = 0xbad0_bad0;
/// The device address of the memory that push constants point to.
pub(crate) const ADDRESS_BASE: u64 = 0x1_0000_0000;

/// The reason why a wave's code cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BuildError {
    Unsupported(Unsupported),
    Hazard(Hazard),
}

/// The reason why an instruction stops.
pub(super) enum HaltReason {
    /// The path depends on whether this value is nonzero.
    UndecidedCondition(u16),
    /// It needs something unsupported.
    Unsupported(String),
    /// A register is not ready: its name, and the line of the load.
    NotReady(String, u32),
}

/// Returns the reason for stopping at something unsupported.
fn unsupported(what: impl Into<String>) -> HaltReason {
    HaltReason::Unsupported(what.into())
}

/// A wave to be built.
pub(crate) struct WaveLaunch<'q> {
    pub kernel: &'q MachineKernel,
    /// Index of the kernel, for messages.
    pub kernel_index: usize,
    pub workgroup: u32,
    pub wave: u32,
    pub wave_size: u32,
    pub lanes: &'q [u8],
}

pub(crate) fn build_wave_code(
    launch: &WaveLaunch<'_>,
    generation: Generation,
    facts: &FactTable,
    profile: Profile,
) -> Result<WaveCode, BuildError> {
    let unsupported_at =
        |line, what: String| BuildError::Unsupported(Unsupported { kernel: launch.kernel_index, line, what });
    let registers = infer_entry(&launch.kernel.program, launch.kernel.address_space.is_some())
        .map_err(|what| unsupported_at(None, what))?;
    let no_end = || unsupported_at(None, "the text ends without s_endpgm".to_owned());
    let instructions = &launch.kernel.program.instructions;
    let mut builder = CodeBuilder {
        launch,
        generation,
        facts,
        profile,
        code: WaveCode::default(),
        state: WaveState::new(launch.lanes),
        instruction: instructions.first().ok_or_else(no_end)?,
    };
    builder.state.set_entry_registers(launch, generation, &registers);
    let mut worklist: Vec<(WaveState, usize)> = Vec::new();
    loop {
        if builder.code.nodes.len() > MAX_NODES {
            return Err(unsupported_at(None, format!("more than {MAX_NODES} steps in the tree of a wave")));
        }
        let state = &mut builder.state;
        let instruction = instructions.get(state.next_instruction).ok_or_else(no_end)?;
        state.executed_instructions += 1;
        if state.executed_instructions > MAX_PATH_LENGTH {
            return Err(unsupported_at(Some(instruction.line), "an endless loop".to_owned()));
        }
        builder.instruction = instruction;
        match builder.execute() {
            Ok(true) => {}
            Ok(false) => {
                builder.code.nodes.push(WaveStep::End);
                let Some((state, branch)) = worklist.pop() else { return Ok(builder.code) };
                builder.state = state;
                let node_index = builder.code.nodes.len() as u32;
                if let Some(WaveStep::BranchIfZero { target, .. }) = builder.code.nodes.get_mut(branch) {
                    *target = node_index;
                }
            }
            Err(HaltReason::UndecidedCondition(value)) => {
                let mut else_state = builder.state.clone();
                else_state.assumed_truths.push((value, false));
                worklist.push((else_state, builder.code.nodes.len()));
                builder.code.nodes.push(WaveStep::BranchIfZero { value, target: 0 });
                builder.state.assumed_truths.push((value, true));
            }
            Err(HaltReason::Unsupported(what)) => {
                let what = format!("{}: {what}", instruction.mnemonic);
                return Err(unsupported_at(Some(instruction.line), what));
            }
            Err(HaltReason::NotReady(register, load)) => {
                let line = instruction.line;
                return Err(BuildError::Hazard(Hazard { kernel: launch.kernel_index, line, register, load }));
            }
        }
    }
}

pub(super) struct CodeBuilder<'q> {
    launch: &'q WaveLaunch<'q>,
    generation: Generation,
    facts: &'q FactTable,
    profile: Profile,
    code: WaveCode,
    state: WaveState,
    /// The instruction that is executed.
    instruction: &'q MachineInstruction,
}

/// The registers of a wave at an instruction, and its outstanding operations.
#[derive(Clone)]
pub(super) struct WaveState {
    next_instruction: usize,
    executed_instructions: u32,
    lanes: Vec<u8>,
    scalar: Vec<WaveValue>,
    /// Values by register, then by lane.
    vector: Vec<WaveValue>,
    /// The outstanding operation that writes each register; 0 for none.
    scalar_pending: Vec<u32>,
    vector_pending: Vec<u32>,
    scc: WaveValue,
    outstanding: Vec<OutstandingOperation>,
    issued_operations: u32,
    assumed_truths: Vec<(u16, bool)>,
}

const SCALAR_REGISTERS: usize = 256;
const VECTOR_REGISTERS: usize = 256;

impl WaveState {
    fn new(lanes: &[u8]) -> WaveState {
        WaveState {
            next_instruction: 0,
            executed_instructions: 0,
            lanes: lanes.to_vec(),
            scalar: vec![WaveValue::Undefined; SCALAR_REGISTERS],
            vector: vec![WaveValue::Undefined; VECTOR_REGISTERS * lanes.len()],
            scalar_pending: vec![0; SCALAR_REGISTERS],
            vector_pending: vec![0; VECTOR_REGISTERS * lanes.len()],
            scc: WaveValue::Undefined,
            outstanding: Vec::new(),
            issued_operations: 0,
            assumed_truths: Vec::new(),
        }
    }

    fn set_entry_registers(
        &mut self,
        launch: &WaveLaunch<'_>,
        generation: Generation,
        registers: &[(u16, EntryValue)],
    ) {
        let set = |state: &mut WaveState, register: u16, value: WaveValue| {
            if let Some(slot) = state.scalar.get_mut(usize::from(register)) {
                *slot = value;
            }
        };
        for (register, entry_value) in registers {
            let value = match entry_value {
                EntryValue::Descriptors => WaveValue::DescriptorSetAddress,
                EntryValue::Address { high: false } => WaveValue::Constant(ADDRESS_BASE as u32),
                EntryValue::Address { high: true } => WaveValue::Constant((ADDRESS_BASE >> 32) as u32),
                EntryValue::WorkgroupId => WaveValue::Constant(launch.workgroup),
                EntryValue::WaveInWorkgroup { shift } => WaveValue::Constant((launch.wave & 0x1f) << shift),
            };
            set(self, *register, value);
        }
        if generation >= Generation::Gfx12 {
            // Indices are in trap registers: ttmp9 has the workgroup's x, ttmp7 y and z, ttmp8 the wave in
            // bits 25 to 29.
            set(self, special::TTMP + 9, WaveValue::Constant(launch.workgroup));
            set(self, special::TTMP + 7, WaveValue::ZERO);
            set(self, special::TTMP + 8, WaveValue::Constant((launch.wave & 0x1f) << 25));
        }
        let exec = self.participating_mask();
        set(self, special::EXEC, WaveValue::Constant(exec as u32));
        set(self, special::EXEC + 1, WaveValue::Constant((exec >> 32) as u32));
        for (lane, number) in self.lanes.clone().into_iter().enumerate() {
            let local = launch.wave.wrapping_mul(launch.wave_size).wrapping_add(u32::from(number));
            if let Some(slot) = self.vector.get_mut(lane) {
                *slot = WaveValue::Constant(local);
            }
        }
    }

    /// Returns the participating lanes as a mask.
    fn participating_mask(&self) -> u64 {
        self.lanes.iter().fold(0, |mask, lane| mask | 1_u64.wrapping_shl(u32::from(*lane)))
    }

    /// Returns the positions of the active ones among the participating lanes.
    fn active_lanes(&self) -> Result<Vec<usize>, HaltReason> {
        let mask = self.read_mask(special::EXEC, 2)?;
        Ok((0..self.lanes.len()).filter(|lane| self.is_lane_in_mask(mask, *lane)).collect())
    }

    fn is_lane_in_mask(&self, mask: u64, lane: usize) -> bool {
        self.lanes.get(lane).is_some_and(|number| mask.wrapping_shr(u32::from(*number)) & 1 == 1)
    }

    /// Returns a mask register, which must be constant.
    fn read_mask(&self, first: u16, count: u16) -> Result<u64, HaltReason> {
        let low = require_constant(self.read_scalar(first)?)?;
        let high = if count > 1 { require_constant(self.read_scalar(first + 1)?)? } else { 0 };
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    fn read_scalar(&self, register: u16) -> Result<WaveValue, HaltReason> {
        if register == special::SCC {
            return Ok(self.scc);
        }
        self.require_ready(self.scalar_pending.get(usize::from(register)), || scalar_name(register))?;
        self.scalar
            .get(usize::from(register))
            .copied()
            .ok_or_else(|| unsupported(format!("register {register}")))
    }

    fn read_vector(&self, register: u16, lane: usize) -> Result<WaveValue, HaltReason> {
        let index = usize::from(register) * self.lanes.len() + lane;
        self.require_ready(self.vector_pending.get(index), || format!("v{register}"))?;
        self.vector.get(index).copied().ok_or_else(|| unsupported(format!("v{register}")))
    }

    fn require_ready(&self, pending: Option<&u32>, name: impl Fn() -> String) -> Result<(), HaltReason> {
        let Some(number) = pending.filter(|number| **number != 0) else { return Ok(()) };
        match self.outstanding.iter().find(|known| known.number == *number) {
            Some(known) => Err(HaltReason::NotReady(name(), known.line)),
            None => Ok(()),
        }
    }

    /// Writes a scalar register. Writes to `exec` are limited to participating lanes.
    fn write_scalar(&mut self, register: u16, value: WaveValue) -> Result<(), HaltReason> {
        if register == special::SCC {
            self.scc = value;
            return Ok(());
        }
        self.require_ready(self.scalar_pending.get(usize::from(register)), || scalar_name(register))?;
        let value = match register {
            special::EXEC => WaveValue::Constant(require_constant(value)? & self.participating_mask() as u32),
            r if r == special::EXEC + 1 => {
                WaveValue::Constant(require_constant(value)? & (self.participating_mask() >> 32) as u32)
            }
            _ => value,
        };
        if let (Some(slot), Some(pending)) =
            (self.scalar.get_mut(usize::from(register)), self.scalar_pending.get_mut(usize::from(register)))
        {
            (*slot, *pending) = (value, 0);
        }
        Ok(())
    }

    /// Checks that a vector register is writable, before any write.
    fn check_writable(&self, register: u16, lane: usize) -> Result<(), HaltReason> {
        let index = usize::from(register) * self.lanes.len() + lane;
        self.require_ready(self.vector_pending.get(index), || format!("v{register}"))?;
        if index < self.vector.len() { Ok(()) } else { Err(unsupported(format!("v{register}"))) }
    }

    fn write_vector(&mut self, register: u16, lane: usize, value: WaveValue) -> Result<(), HaltReason> {
        self.check_writable(register, lane)?;
        let index = usize::from(register) * self.lanes.len() + lane;
        if let (Some(slot), Some(pending)) = (self.vector.get_mut(index), self.vector_pending.get_mut(index))
        {
            (*slot, *pending) = (value, 0);
        }
        Ok(())
    }
}

/// Returns a value that must be a constant.
fn require_constant(value: WaveValue) -> Result<u32, HaltReason> {
    match value {
        WaveValue::Constant(word) => Ok(word),
        WaveValue::Expression(_) => Err(unsupported("a mask, an address or an amount returned by a load")),
        WaveValue::Undefined => Err(unsupported("a register that was not written")),
        WaveValue::DescriptorSetAddress | WaveValue::DescriptorWord { .. } => {
            Err(unsupported("arithmetic on a descriptor"))
        }
    }
}

fn scalar_name(register: u16) -> String {
    match register {
        special::VCC => "vcc_lo".to_owned(),
        r if r == special::VCC + 1 => "vcc_hi".to_owned(),
        special::EXEC => "exec_lo".to_owned(),
        r if r == special::EXEC + 1 => "exec_hi".to_owned(),
        special::M0 => "m0".to_owned(),
        r if (special::TTMP..special::TTMP + 16).contains(&r) => format!("ttmp{}", r - special::TTMP),
        r => format!("s{r}"),
    }
}

impl CodeBuilder<'_> {
    /// Executes an instruction; returns false at the end of the wave. A halted instruction has changed
    /// nothing.
    fn execute(&mut self) -> Result<bool, HaltReason> {
        let instruction = self.instruction;
        if let Some(word) = instruction.modifiers.unknown.first() {
            return Err(unsupported(format!("modifier `{word}`")));
        }
        for operand in &instruction.operands {
            if let MachineOperand::Unknown(word) = operand {
                return Err(unsupported(format!("operand `{word}`")));
            }
        }
        match &instruction.opcode {
            Opcode::NoEffect => {}
            // In CU mode, vector accesses of a workgroup that have read their registers reach its cache in
            // order, and compilers wait for that ahead of a barrier instead of for the accesses.
            Opcode::DependencyWait if waits_for_vector_sources(&instruction.text) => {
                return Err(unsupported("a wait for `vm_vsrc`, whose order depends on CU or WGP mode"));
            }
            Opcode::DependencyWait => {}
            Opcode::Unknown => return Err(unsupported("unknown opcode")),
            Opcode::End => return Ok(false),
            Opcode::Branch(when) => return self.execute_branch(*when).map(|()| true),
            Opcode::Waitcnt => self.execute_waitcnt()?,
            Opcode::Wait(counters) => self.execute_counter_wait(counters)?,
            Opcode::Barrier => {
                self.code.nodes.push(WaveStep::BarrierSignal { line: instruction.line });
                self.code.nodes.push(WaveStep::BarrierWait { line: instruction.line });
            }
            Opcode::BarrierSignal => self.code.nodes.push(WaveStep::BarrierSignal { line: instruction.line }),
            Opcode::BarrierWait => self.code.nodes.push(WaveStep::BarrierWait { line: instruction.line }),
            Opcode::Cache(cache) => self.execute_cache(*cache)?,
            Opcode::Scalar(_) | Opcode::Vector(_) => self.execute_arithmetic()?,
            Opcode::Memory(memory) => self.execute_memory(*memory)?,
        }
        self.state.next_instruction += 1;
        Ok(true)
    }

    fn execute_branch(&mut self, condition: JumpCondition) -> Result<(), HaltReason> {
        let instruction = self.instruction;
        let taken = match condition {
            JumpCondition::Always => true,
            JumpCondition::SccZero => !self.decide_nonzero(self.state.scc)?,
            JumpCondition::SccOne => self.decide_nonzero(self.state.scc)?,
            JumpCondition::VccZero => self.state.read_mask(special::VCC, 2)? == 0,
            JumpCondition::VccNotZero => self.state.read_mask(special::VCC, 2)? != 0,
            JumpCondition::ExecZero => self.state.active_lanes()?.is_empty(),
            JumpCondition::ExecNotZero => !self.state.active_lanes()?.is_empty(),
        };
        if !taken {
            self.state.next_instruction += 1;
            return Ok(());
        }
        let Some(MachineOperand::Name(label)) = instruction.operands.first() else {
            return Err(unsupported("a jump without a label"));
        };
        let target = self.launch.kernel.program.label_target(label);
        self.state.next_instruction = target.ok_or_else(|| unsupported(format!("no label `{label}`")))?;
        Ok(())
    }

    /// Decides whether a value is nonzero, if the conditions of this path determine it.
    fn decide_nonzero(&mut self, value: WaveValue) -> Result<bool, HaltReason> {
        match value {
            WaveValue::Constant(word) => Ok(word != 0),
            WaveValue::Expression(number) => {
                match self.state.assumed_truths.iter().find(|(known, _)| *known == number) {
                    Some((_, truth)) => Ok(*truth),
                    None => Err(HaltReason::UndecidedCondition(number)),
                }
            }
            WaveValue::DescriptorSetAddress | WaveValue::DescriptorWord { .. } | WaveValue::Undefined => {
                require_constant(value).map(|word| word != 0)
            }
        }
    }

    /// Returns the result of an operation; a constant for constant operands.
    fn compute_value(
        &mut self,
        alu: AluOperation,
        a: WaveValue,
        b: WaveValue,
        c: WaveValue,
    ) -> Result<WaveValue, HaltReason> {
        if let (WaveValue::Constant(a), WaveValue::Constant(b), WaveValue::Constant(c)) = (a, b, c) {
            return Ok(WaveValue::Constant(alu.apply(a, b, c)));
        }
        if alu == AluOperation::Mov {
            return Ok(a);
        }
        // Compilers build small values by inserting into unwritten registers; the other bytes are not used.
        if matches!(alu, AluOperation::Insert | AluOperation::Permute)
            && [a, b, c].contains(&WaveValue::Undefined)
        {
            let [a, b, c] = [a, b, c]
                .map(|v| if v == WaveValue::Undefined { WaveValue::Constant(UNWRITTEN_REGISTER) } else { v });
            return self.compute_value(alu, a, b, c);
        }
        for value in [a, b, c] {
            match value {
                WaveValue::Undefined => return Ok(WaveValue::Undefined),
                WaveValue::DescriptorSetAddress | WaveValue::DescriptorWord { .. } => {
                    return Err(unsupported("arithmetic on a descriptor"));
                }
                WaveValue::Constant(_) | WaveValue::Expression(_) => {}
            }
        }
        self.add_expression(WaveExpression::Operation(alu, a, b, c))
    }

    fn add_expression(&mut self, expression: WaveExpression) -> Result<WaveValue, HaltReason> {
        if let Some(existing) = self.code.expressions.iter().position(|known| *known == expression) {
            return Ok(WaveValue::Expression(existing as u16));
        }
        let number = u16::try_from(self.code.expressions.len())
            .map_err(|_| unsupported("more than 65535 expressions"))?;
        self.code.expressions.push(expression);
        Ok(WaveValue::Expression(number))
    }

    /// Returns a word of a scalar operand: the `index`-th register, or half of a number.
    fn scalar_operand(&self, operand: &MachineOperand, index: u16) -> Result<WaveValue, HaltReason> {
        match operand {
            MachineOperand::Scalar(RegisterRange { first, count }) if index < *count => {
                self.state.read_scalar(first + index)
            }
            MachineOperand::Number(value) => {
                Ok(WaveValue::Constant(if index == 0 { *value as u32 } else { (*value >> 32) as u32 }))
            }
            MachineOperand::Float(bits) if index == 0 => Ok(WaveValue::Constant(*bits)),
            MachineOperand::Null => Ok(WaveValue::ZERO),
            other => Err(unsupported(format!("operand {other:?}"))),
        }
    }

    /// Returns a word of an operand for a lane.
    fn lane_operand(
        &mut self,
        operand: &MachineOperand,
        index: u16,
        lane: usize,
    ) -> Result<WaveValue, HaltReason> {
        match operand {
            MachineOperand::Half { register, high } if index == 0 => {
                let register_value = self.state.read_vector(*register, lane)?;
                let shift = WaveValue::Constant(if *high { 16 } else { 0 });
                let shifted =
                    self.compute_value(AluOperation::ShiftRight, register_value, shift, WaveValue::ZERO)?;
                self.compute_value(AluOperation::LowHalf, shifted, WaveValue::ZERO, WaveValue::ZERO)
            }
            MachineOperand::Vector(RegisterRange { first, count }) if index < *count => {
                self.state.read_vector(first + index, lane)
            }
            _ => self.scalar_operand(operand, index),
        }
    }
}

/// Returns true if a wait for registers waits for the sources of vector accesses: bits 2 to 4 of its number.
fn waits_for_vector_sources(text: &str) -> bool {
    let (_, fields) = text.split_once(char::is_whitespace).unwrap_or_default();
    match crate::text::parse_number(fields.trim().trim_start_matches("imm:")) {
        Some(number) => (number >> 2) & 7 != 7,
        None => fields.contains("vm_vsrc"),
    }
}

fn operand_at(instruction: &MachineInstruction, index: usize) -> Result<&MachineOperand, HaltReason> {
    instruction.operands.get(index).ok_or_else(|| unsupported("too few operands"))
}

fn scalar_registers_at(instruction: &MachineInstruction, index: usize) -> Result<RegisterRange, HaltReason> {
    match operand_at(instruction, index)? {
        MachineOperand::Scalar(registers) => Ok(*registers),
        // Writes to `null` are discarded.
        other => Err(unsupported(format!("operand {other:?}"))),
    }
}

fn vector_registers_at(instruction: &MachineInstruction, index: usize) -> Result<RegisterRange, HaltReason> {
    match operand_at(instruction, index)? {
        MachineOperand::Vector(registers) => Ok(*registers),
        other => Err(unsupported(format!("operand {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::waits_for_vector_sources;

    #[test]
    fn waits_for_vector_sources_are_recognized() {
        let texts = [
            ("s_waitcnt_depctr 0xffe3", true),
            ("s_wait_alu 0xffe3", true),
            ("s_wait_alu depctr_vm_vsrc(0)", true),
            ("s_waitcnt_depctr 0xfffe", false),
            ("s_wait_alu depctr_sa_sdst(0)", false),
        ];
        for (text, expected) in texts {
            assert_eq!(waits_for_vector_sources(text), expected, "{text}");
        }
    }
}
