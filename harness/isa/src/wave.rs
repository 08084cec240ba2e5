//! Symbolic execution of one wave: evaluates all computations that do not depend on memory.
//!
//! Registers hold constants or expressions over loaded values. If an instruction needs an unknown condition,
//! the code branches on it. The result is a tree of accesses, waits and barriers that is the same for every
//! interleaving and placement. Bounds: [`NODES`] and [`PATH`].

mod access;
mod arithmetic;
mod counters;

use crate::alu::Alu;
use crate::code::{LoadedValue, WaveCode, WaveExpression, WaveStep};
use crate::entry::{EntryValue, infer_entry};
use crate::facts::{FactTable, Profile};
use crate::family::Generation;
use crate::opcode::{JumpCondition, Opcode};
use crate::question::{Hazard, MachineKernel, Unsupported};
use crate::text::{MachineInstruction, MachineOperand, RegisterRange, special};
use counters::Outstanding;

/// The maximum number of nodes of a tree.
const NODES: usize = 20_000;
/// The maximum number of instructions on one path; a longer path is treated as a loop.
const PATH: u32 = 20_000;
/// The content of unwritten bytes of a register, a value that no test writes.
const GARBAGE: u32 = 0xbad0_bad0;
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
    Decide(u16),
    /// It needs something unsupported.
    Unknown(String),
    /// A register is not ready: its name, and the line of the load.
    NotReady(String, u32),
}

/// A wave to be built.
pub(crate) struct WaveLaunch<'q> {
    pub kernel: &'q MachineKernel,
    /// Index of the kernel, for messages.
    pub number: usize,
    pub workgroup: u32,
    pub wave: u32,
    pub wave_size: u32,
    pub lanes: &'q [u8],
}

/// Builds the code of a wave.
pub(crate) fn build_code(
    launch: &WaveLaunch<'_>,
    generation: Generation,
    facts: &FactTable,
    profile: Profile,
) -> Result<WaveCode, BuildError> {
    let unsupported =
        |line, what: String| BuildError::Unsupported(Unsupported { kernel: launch.number, line, what });
    let registers = infer_entry(&launch.kernel.program, launch.kernel.address.is_some())
        .map_err(|what| unsupported(None, what))?;
    let mut builder = CodeBuilder { launch, generation, facts, profile, code: WaveCode::default() };
    let mut first = WaveState::new(launch.lanes);
    first.set_entry(launch, generation, &registers);
    let mut work: Vec<(WaveState, Option<usize>)> = vec![(first, None)];
    while let Some((mut state, from)) = work.pop() {
        if let Some(from) = from {
            let here = builder.code.nodes.len() as u32;
            if let Some(WaveStep::Decide { other, .. }) = builder.code.nodes.get_mut(from) {
                *other = here;
            }
        }
        loop {
            if builder.code.nodes.len() > NODES {
                return Err(unsupported(None, format!("more than {NODES} steps in the tree of a wave")));
            }
            let Some(instruction) = launch.kernel.program.instructions.get(state.at) else {
                return Err(unsupported(None, "the text ends without s_endpgm".to_owned()));
            };
            state.executed += 1;
            if state.executed > PATH {
                return Err(unsupported(Some(instruction.line), "an endless loop".to_owned()));
            }
            match builder.execute(&mut state, instruction) {
                Ok(true) => {}
                Ok(false) => {
                    builder.code.nodes.push(WaveStep::End);
                    break;
                }
                Err(HaltReason::Decide(value)) => {
                    let from = builder.code.nodes.len();
                    builder.code.nodes.push(WaveStep::Decide { value, other: 0 });
                    let mut other = state.clone();
                    other.assumed.push((value, false));
                    work.push((other, Some(from)));
                    state.assumed.push((value, true));
                }
                Err(HaltReason::Unknown(what)) => {
                    return Err(unsupported(
                        Some(instruction.line),
                        format!("{}: {what}", instruction.mnemonic),
                    ));
                }
                Err(HaltReason::NotReady(register, load)) => {
                    let hazard = Hazard { kernel: launch.number, line: instruction.line, register, load };
                    return Err(BuildError::Hazard(hazard));
                }
            }
        }
    }
    Ok(builder.code)
}

pub(super) struct CodeBuilder<'q> {
    launch: &'q WaveLaunch<'q>,
    generation: Generation,
    facts: &'q FactTable,
    profile: Profile,
    code: WaveCode,
}

/// The registers of a wave at an instruction, and its outstanding operations.
#[derive(Clone)]
pub(super) struct WaveState {
    at: usize,
    executed: u32,
    lanes: Vec<u8>,
    scalar: Vec<LoadedValue>,
    /// Values by register, then by lane.
    vector: Vec<LoadedValue>,
    /// The outstanding operation that writes each register; 0 for none.
    scalar_pending: Vec<u32>,
    vector_pending: Vec<u32>,
    scc: LoadedValue,
    outstanding: Vec<Outstanding>,
    issued: u32,
    assumed: Vec<(u16, bool)>,
}

const SCALARS: usize = 256;
const VECTORS: usize = 256;

impl WaveState {
    fn new(lanes: &[u8]) -> WaveState {
        WaveState {
            at: 0,
            executed: 0,
            lanes: lanes.to_vec(),
            scalar: vec![LoadedValue::Undefined; SCALARS],
            vector: vec![LoadedValue::Undefined; VECTORS * lanes.len()],
            scalar_pending: vec![0; SCALARS],
            vector_pending: vec![0; VECTORS * lanes.len()],
            scc: LoadedValue::Undefined,
            outstanding: Vec::new(),
            issued: 0,
            assumed: Vec::new(),
        }
    }

    fn set_entry(
        &mut self,
        launch: &WaveLaunch<'_>,
        generation: Generation,
        registers: &[(u16, EntryValue)],
    ) {
        let set = |state: &mut WaveState, register: u16, value: LoadedValue| {
            if let Some(slot) = state.scalar.get_mut(usize::from(register)) {
                *slot = value;
            }
        };
        for (register, what) in registers {
            let value = match what {
                EntryValue::Descriptors => LoadedValue::Descriptors,
                EntryValue::Address { high: false } => LoadedValue::Word(ADDRESS_BASE as u32),
                EntryValue::Address { high: true } => LoadedValue::Word((ADDRESS_BASE >> 32) as u32),
                EntryValue::WorkgroupId => LoadedValue::Word(launch.workgroup),
                EntryValue::WaveInWorkgroup { shift } => LoadedValue::Word((launch.wave & 0x1f) << shift),
            };
            set(self, *register, value);
        }
        if generation >= Generation::Gfx12 {
            // Indices are in trap registers: ttmp9 has the workgroup's x, ttmp7 y and z, ttmp8 the wave in
            // bits 25 to 29.
            set(self, special::TTMP + 9, LoadedValue::Word(launch.workgroup));
            set(self, special::TTMP + 7, LoadedValue::Word(0));
            set(self, special::TTMP + 8, LoadedValue::Word((launch.wave & 0x1f) << 25));
        }
        let exec = self.participating_mask();
        set(self, special::EXEC, LoadedValue::Word(exec as u32));
        set(self, special::EXEC + 1, LoadedValue::Word((exec >> 32) as u32));
        for (lane, number) in self.lanes.clone().into_iter().enumerate() {
            let local = launch.wave.wrapping_mul(launch.wave_size).wrapping_add(u32::from(number));
            if let Some(slot) = self.vector.get_mut(lane) {
                *slot = LoadedValue::Word(local);
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
        Ok((0..self.lanes.len()).filter(|lane| self.mask_bit(mask, *lane)).collect())
    }

    fn mask_bit(&self, mask: u64, lane: usize) -> bool {
        self.lanes.get(lane).is_some_and(|number| mask.wrapping_shr(u32::from(*number)) & 1 == 1)
    }

    /// Returns a mask register, which must be constant.
    fn read_mask(&self, first: u16, count: u16) -> Result<u64, HaltReason> {
        let low = self.require_word(self.read_scalar(first)?)?;
        let high = if count > 1 { self.require_word(self.read_scalar(first + 1)?)? } else { 0 };
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    fn require_word(&self, value: LoadedValue) -> Result<u32, HaltReason> {
        match value {
            LoadedValue::Word(word) => Ok(word),
            LoadedValue::Loaded(_) => {
                Err(HaltReason::Unknown("a mask, an address or an amount returned by a load".to_owned()))
            }
            LoadedValue::Undefined => Err(HaltReason::Unknown("a register that was not written".to_owned())),
            LoadedValue::Descriptors | LoadedValue::Descriptor { .. } => {
                Err(HaltReason::Unknown("arithmetic on a descriptor".to_owned()))
            }
        }
    }

    fn read_scalar(&self, register: u16) -> Result<LoadedValue, HaltReason> {
        if register == special::SCC {
            return Ok(self.scc);
        }
        self.require_ready(self.scalar_pending.get(usize::from(register)), || scalar_name(register))?;
        self.scalar
            .get(usize::from(register))
            .copied()
            .ok_or_else(|| HaltReason::Unknown(format!("register {register}")))
    }

    fn read_vector(&self, register: u16, lane: usize) -> Result<LoadedValue, HaltReason> {
        let index = usize::from(register) * self.lanes.len() + lane;
        self.require_ready(self.vector_pending.get(index), || format!("v{register}"))?;
        self.vector.get(index).copied().ok_or_else(|| HaltReason::Unknown(format!("v{register}")))
    }

    fn require_ready(&self, pending: Option<&u32>, name: impl Fn() -> String) -> Result<(), HaltReason> {
        let Some(number) = pending.filter(|number| **number != 0) else { return Ok(()) };
        match self.outstanding.iter().find(|known| known.number == *number) {
            Some(known) => Err(HaltReason::NotReady(name(), known.line)),
            None => Ok(()),
        }
    }

    /// PendingWrites a scalar register. PendingWrites to `exec` are limited to participating lanes.
    fn write_scalar(&mut self, register: u16, value: LoadedValue) -> Result<(), HaltReason> {
        if register == special::SCC {
            self.scc = value;
            return Ok(());
        }
        self.require_ready(self.scalar_pending.get(usize::from(register)), || scalar_name(register))?;
        let value = match register {
            special::EXEC => LoadedValue::Word(self.require_word(value)? & self.participating_mask() as u32),
            r if r == special::EXEC + 1 => {
                LoadedValue::Word(self.require_word(value)? & (self.participating_mask() >> 32) as u32)
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
        if index < self.vector.len() { Ok(()) } else { Err(HaltReason::Unknown(format!("v{register}"))) }
    }

    fn write_vector(&mut self, register: u16, lane: usize, value: LoadedValue) -> Result<(), HaltReason> {
        self.check_writable(register, lane)?;
        let index = usize::from(register) * self.lanes.len() + lane;
        if let (Some(slot), Some(pending)) = (self.vector.get_mut(index), self.vector_pending.get_mut(index))
        {
            (*slot, *pending) = (value, 0);
        }
        Ok(())
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
    fn execute(
        &mut self,
        state: &mut WaveState,
        instruction: &MachineInstruction,
    ) -> Result<bool, HaltReason> {
        if let Some(word) = instruction.modifiers.unknown.first() {
            return Err(HaltReason::Unknown(format!("modifier `{word}`")));
        }
        for operand in &instruction.operands {
            if let MachineOperand::Unknown(word) = operand {
                return Err(HaltReason::Unknown(format!("operand `{word}`")));
            }
        }
        match &instruction.opcode {
            Opcode::Nothing => {}
            Opcode::Unknown => return Err(HaltReason::Unknown("unknown opcode".to_owned())),
            Opcode::End => return Ok(false),
            Opcode::Branch(when) => return self.execute_branch(state, instruction, *when).map(|()| true),
            Opcode::Waitcnt => self.wait_by_name(state, instruction)?,
            Opcode::Wait(counters) => self.wait_by_number(state, instruction, counters)?,
            Opcode::Barrier => {
                self.code.nodes.push(WaveStep::Signal { line: instruction.line });
                self.code.nodes.push(WaveStep::Join { line: instruction.line });
            }
            Opcode::BarrierSignal => self.code.nodes.push(WaveStep::Signal { line: instruction.line }),
            Opcode::BarrierWait => self.code.nodes.push(WaveStep::Join { line: instruction.line }),
            Opcode::Cache(cache) => self.execute_cache(instruction, *cache)?,
            Opcode::Scalar(_) | Opcode::Vector(_) => self.execute_arithmetic(state, instruction)?,
            Opcode::Memory(memory) => self.execute_memory(state, instruction, *memory)?,
        }
        state.at += 1;
        Ok(true)
    }

    fn execute_branch(
        &mut self,
        state: &mut WaveState,
        instruction: &MachineInstruction,
        when: JumpCondition,
    ) -> Result<(), HaltReason> {
        let taken = match when {
            JumpCondition::Always => true,
            JumpCondition::SccZero => !self.decide_truth(state, state.scc)?,
            JumpCondition::SccOne => self.decide_truth(state, state.scc)?,
            JumpCondition::VccZero => state.read_mask(special::VCC, 2)? == 0,
            JumpCondition::VccNotZero => state.read_mask(special::VCC, 2)? != 0,
            JumpCondition::ExecZero => state.active_lanes()?.is_empty(),
            JumpCondition::ExecNotZero => !state.active_lanes()?.is_empty(),
        };
        if !taken {
            state.at += 1;
            return Ok(());
        }
        let Some(MachineOperand::Name(label)) = instruction.operands.first() else {
            return Err(HaltReason::Unknown("a jump without a label".to_owned()));
        };
        let target = self.launch.kernel.program.label_target(label);
        state.at = target.ok_or_else(|| HaltReason::Unknown(format!("no label `{label}`")))?;
        Ok(())
    }

    /// Decides whether a value is nonzero, if the conditions of this path determine it.
    fn decide_truth(&mut self, state: &WaveState, value: LoadedValue) -> Result<bool, HaltReason> {
        match value {
            LoadedValue::Word(word) => Ok(word != 0),
            LoadedValue::Loaded(number) => match state.assumed.iter().find(|(known, _)| *known == number) {
                Some((_, truth)) => Ok(*truth),
                None => Err(HaltReason::Decide(number)),
            },
            LoadedValue::Descriptors | LoadedValue::Descriptor { .. } | LoadedValue::Undefined => {
                state.require_word(value).map(|word| word != 0)
            }
        }
    }

    /// Returns the result of an operation; a constant for constant operands.
    fn compute_value(
        &mut self,
        alu: Alu,
        a: LoadedValue,
        b: LoadedValue,
        c: LoadedValue,
    ) -> Result<LoadedValue, HaltReason> {
        if let (LoadedValue::Word(a), LoadedValue::Word(b), LoadedValue::Word(c)) = (a, b, c) {
            return Ok(LoadedValue::Word(alu.apply(a, b, c)));
        }
        if alu == Alu::Mov {
            return Ok(a);
        }
        // Compilers build small values by inserting into unwritten registers; the other bytes are not used.
        if matches!(alu, Alu::Insert | Alu::Permute) && [a, b, c].contains(&LoadedValue::Undefined) {
            let [a, b, c] =
                [a, b, c].map(|v| if v == LoadedValue::Undefined { LoadedValue::Word(GARBAGE) } else { v });
            return self.compute_value(alu, a, b, c);
        }
        for value in [a, b, c] {
            match value {
                LoadedValue::Undefined => return Ok(LoadedValue::Undefined),
                LoadedValue::Descriptors | LoadedValue::Descriptor { .. } => {
                    return Err(HaltReason::Unknown("arithmetic on a descriptor".to_owned()));
                }
                LoadedValue::Word(_) | LoadedValue::Loaded(_) => {}
            }
        }
        self.add_expression(WaveExpression::Operation(alu, a, b, c))
    }

    fn add_expression(&mut self, expression: WaveExpression) -> Result<LoadedValue, HaltReason> {
        if let Some(known) = self.code.expressions.iter().position(|known| *known == expression) {
            return Ok(LoadedValue::Loaded(known as u16));
        }
        let number = u16::try_from(self.code.expressions.len())
            .map_err(|_| HaltReason::Unknown("more than 65535 expressions".to_owned()))?;
        self.code.expressions.push(expression);
        Ok(LoadedValue::Loaded(number))
    }

    /// Returns a word of a scalar operand: the `index`-th register, or half of a number.
    fn scalar_operand(
        &self,
        state: &WaveState,
        operand: &MachineOperand,
        index: u16,
    ) -> Result<LoadedValue, HaltReason> {
        match operand {
            MachineOperand::Scalar(RegisterRange { first, count }) if index < *count => {
                state.read_scalar(first + index)
            }
            MachineOperand::Number(value) => {
                Ok(LoadedValue::Word(if index == 0 { *value as u32 } else { (*value >> 32) as u32 }))
            }
            MachineOperand::Float(bits) if index == 0 => Ok(LoadedValue::Word(*bits)),
            MachineOperand::Null => Ok(LoadedValue::Word(0)),
            other => Err(HaltReason::Unknown(format!("operand {other:?}"))),
        }
    }

    /// Returns a word of an operand for a lane.
    fn lane_operand(
        &mut self,
        state: &WaveState,
        operand: &MachineOperand,
        index: u16,
        lane: usize,
    ) -> Result<LoadedValue, HaltReason> {
        match operand {
            MachineOperand::Half { register, high } if index == 0 => {
                let whole = state.read_vector(*register, lane)?;
                let shift = LoadedValue::Word(if *high { 16 } else { 0 });
                let shifted = self.compute_value(Alu::ShiftRight, whole, shift, LoadedValue::Word(0))?;
                self.compute_value(Alu::LowHalf, shifted, LoadedValue::Word(0), LoadedValue::Word(0))
            }
            MachineOperand::Vector(RegisterRange { first, count }) if index < *count => {
                state.read_vector(first + index, lane)
            }
            _ => self.scalar_operand(state, operand, index),
        }
    }
}

/// Returns the operand at an index.
fn operand_at(instruction: &MachineInstruction, place: usize) -> Result<&MachineOperand, HaltReason> {
    instruction.operands.get(place).ok_or_else(|| HaltReason::Unknown("too few operands".to_owned()))
}

fn scalar_at(instruction: &MachineInstruction, place: usize) -> Result<RegisterRange, HaltReason> {
    match operand_at(instruction, place)? {
        MachineOperand::Scalar(registers) => Ok(*registers),
        // PendingWrites to `null` are discarded.
        other => Err(HaltReason::Unknown(format!("operand {other:?}"))),
    }
}

fn vector_at(instruction: &MachineInstruction, place: usize) -> Result<RegisterRange, HaltReason> {
    match operand_at(instruction, place)? {
        MachineOperand::Vector(registers) => Ok(*registers),
        other => Err(HaltReason::Unknown(format!("operand {other:?}"))),
    }
}
