//! The residual code of a wave after symbolic execution: accesses, waits, barriers and decisions.

use crate::alu::AluOperation;
use crate::opcode::{AccessAction, CacheInstruction};
use crate::question::MemoryWord;

/// A constant, or a value that depends on loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WaveValue {
    /// A number.
    Constant(u32),
    /// The index of an expression.
    Expression(u16),
    /// The low half of the address of the descriptor set.
    DescriptorSetAddress,
    /// A word of the descriptor at this offset of the descriptor set.
    DescriptorWord { offset: u32, word: u8 },
    /// A value that was never written.
    Undefined,
}

impl WaveValue {
    pub const ZERO: WaveValue = WaveValue::Constant(0);
}

/// A word computed from loaded values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WaveExpression {
    /// Some bytes of a loaded cell.
    Load { slot: u16, shift: u8, bytes: u8, signed: bool },
    /// An operation on up to three values.
    Operation(AluOperation, WaveValue, WaveValue, WaveValue),
}

/// The code of one wave as a tree, which branches at decisions that depend on loaded values.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaveCode {
    /// The nodes; each continues with the next one unless stated otherwise.
    pub nodes: Vec<WaveStep>,
    /// Every access of the tree.
    pub accesses: Vec<Access>,
    pub expressions: Vec<WaveExpression>,
    /// The number of values that loads return.
    pub slot_count: u16,
    /// Names of the applied rules about bits.
    pub applied_facts: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum WaveStep {
    /// Issues an access.
    Access(u16),
    /// Waits until these are complete.
    Wait { line: u32, accesses: Vec<u16> },
    /// Arrives at the workgroup's barrier.
    BarrierSignal { line: u32 },
    /// Waits until all waves of the workgroup have arrived equally often.
    BarrierWait { line: u32 },
    /// Executes a cache instruction.
    Cache { line: u32, cache: CacheInstruction, scope: u8 },
    /// Continues at `target` if the value is 0.
    BranchIfZero { value: u16, target: u32 },
    /// Ends the wave.
    End,
}

/// The unit that performs an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MemoryUnit {
    /// Through the vector cache.
    Vector,
    /// Through the scalar cache.
    Scalar,
    /// In the local data share.
    Lds,
}

/// An access by all participating lanes.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub line: u32,
    /// The unit that performs it.
    pub unit: MemoryUnit,
    /// Load, store or atomic.
    pub action: AccessAction,
    /// For each cache, true if the access bypasses it.
    pub bypassed: [bool; 3],
    /// True if a wait for it waits for memory; otherwise it is complete on arrival.
    pub waits_for_memory: bool,
    /// The parts of memory that it accesses, at most 64.
    pub parts: Vec<AccessPart>,
}

/// The part of one lane within 8 aligned bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessPart {
    /// The word; its space is [`LDS_SPACE`] in the local data share.
    pub word: MemoryWord,
    /// The slot that receives the 8 bytes found by a load or atomic.
    pub slot: Option<u16>,
    /// The stored low and high words.
    pub data: [WaveValue; 2],
    /// The comparison value of a compare-exchange.
    pub compare: [WaveValue; 2],
}

/// The space of the local data share.
pub(crate) const LDS_SPACE: crate::question::MemorySpace = crate::question::MemorySpace(u16::MAX);

impl WaveCode {
    /// Evaluates an expression, given the returned values of loads.
    pub fn evaluate(&self, value: WaveValue, slots: &[u64]) -> u32 {
        match value {
            WaveValue::Constant(word) => word,
            WaveValue::Expression(index) => match self.expressions.get(usize::from(index)) {
                Some(WaveExpression::Load { slot, shift, bytes, signed }) => {
                    let cell = slots.get(usize::from(*slot)).copied().unwrap_or(0) >> shift;
                    match (bytes, signed) {
                        (1, false) => cell as u32 & 0xff,
                        (1, true) => AluOperation::SignByte.apply(cell as u32, 0, 0),
                        (2, false) => cell as u32 & 0xffff,
                        (2, true) => AluOperation::SignHalf.apply(cell as u32, 0, 0),
                        _ => cell as u32,
                    }
                }
                Some(WaveExpression::Operation(alu, a, b, c)) => {
                    let [a, b, c] = [a, b, c].map(|value| self.evaluate(*value, slots));
                    alu.apply(a, b, c)
                }
                None => 0,
            },
            WaveValue::DescriptorSetAddress | WaveValue::DescriptorWord { .. } | WaveValue::Undefined => 0,
        }
    }
}
