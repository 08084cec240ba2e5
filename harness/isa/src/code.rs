//! The residual code of a wave after symbolic execution: accesses, waits, barriers and decisions.

use crate::alu::Alu;
use crate::opcode::{Action, CacheInstruction};
use crate::question::MemoryWord;

/// A constant, or a value that depends on loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LoadedValue {
    /// A constant.
    Word(u32),
    /// The index of an expression.
    Loaded(u16),
    /// The low half of the address of the descriptor set.
    Descriptors,
    /// A word of the descriptor at this offset of the descriptor set.
    Descriptor { offset: u32, word: u8 },
    /// A value that was never written.
    Undefined,
}

/// A word computed from loaded values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WaveExpression {
    /// Some bytes of a loaded cell.
    Load { slot: u16, shift: u8, bytes: u8, signed: bool },
    /// An operation.
    Operation(Alu, LoadedValue, LoadedValue, LoadedValue),
}

/// The code of one wave as a tree, which branches at decisions that depend on loaded values.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaveCode {
    /// The nodes; each continues with the next one unless stated otherwise.
    pub nodes: Vec<WaveStep>,
    /// Every access of the tree.
    pub accesses: Vec<Access>,
    /// Every expression.
    pub expressions: Vec<WaveExpression>,
    /// The number of values that loads return.
    pub slots: u16,
    /// Names of the applied rules about bits.
    pub facts: Vec<String>,
}

/// A step of a wave.
#[derive(Clone, Debug)]
pub(crate) enum WaveStep {
    /// Issues an access.
    Access(u16),
    /// Waits until these are complete.
    Wait { line: u32, accesses: Vec<u16> },
    /// Arrives at the workgroup's barrier.
    Signal { line: u32 },
    /// Waits until all waves of the workgroup have arrived equally often.
    Join { line: u32 },
    /// Invalidates cache lines.
    Cache { line: u32, cache: CacheInstruction, scope: u8 },
    /// Continues at `other` if the value is 0.
    Decide { value: u16, other: u32 },
    /// The end.
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
    /// The line of the text.
    pub line: u32,
    /// The unit that performs it.
    pub way: MemoryUnit,
    /// Load, store or atomic.
    pub action: Action,
    /// The caches that it bypasses.
    pub skips: BypassedCaches,
    /// True if a wait for it waits for memory; otherwise it is complete on arrival.
    pub waited: bool,
    /// The parts of memory that it accesses, at most 64.
    pub parts: Vec<AccessPart>,
}

/// The caches that an access bypasses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BypassedCaches {
    pub vector: bool,
    pub array: bool,
    pub scalar: bool,
}

/// The part of one lane within 8 aligned bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessPart {
    /// The place; the space is [`LDS`] for the local data share.
    pub place: MemoryWord,
    /// The slot that receives the 8 bytes found by a load or atomic.
    pub slot: Option<u16>,
    /// The stored low and high words.
    pub data: [LoadedValue; 2],
    /// The comparison value of a compare-exchange.
    pub compare: [LoadedValue; 2],
}

/// The space of the local data share.
pub(crate) const LDS: crate::question::MemorySpace = crate::question::MemorySpace(u16::MAX);

impl WaveCode {
    /// Evaluates an expression, given the returned values of loads.
    pub fn evaluate(&self, value: LoadedValue, slots: &[u64]) -> u32 {
        match value {
            LoadedValue::Word(word) => word,
            LoadedValue::Loaded(number) => match self.expressions.get(usize::from(number)) {
                Some(WaveExpression::Load { slot, shift, bytes, signed }) => {
                    let cell = slots.get(usize::from(*slot)).copied().unwrap_or(0) >> shift;
                    match (bytes, signed) {
                        (1, false) => cell as u32 & 0xff,
                        (1, true) => Alu::SignByte.apply(cell as u32, 0, 0),
                        (2, false) => cell as u32 & 0xffff,
                        (2, true) => Alu::SignHalf.apply(cell as u32, 0, 0),
                        _ => cell as u32,
                    }
                }
                Some(WaveExpression::Operation(alu, a, b, c)) => {
                    let [a, b, c] = [a, b, c].map(|value| self.evaluate(*value, slots));
                    alu.apply(a, b, c)
                }
                None => 0,
            },
            LoadedValue::Descriptors | LoadedValue::Descriptor { .. } | LoadedValue::Undefined => 0,
        }
    }
}
