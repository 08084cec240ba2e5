//! What is left of a wave's instructions once everything known has been computed: accesses, waits, barriers, decisions.

use crate::alu::Alu;
use crate::opcode::{Action, Cache};
use crate::question::Word;

/// A value that is known, or computed from what loads return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    /// Known.
    Word(u32),
    /// Number of an expression.
    Loaded(u16),
    /// The low half of the address of the descriptor set.
    Descriptors,
    /// A word of the descriptor at this offset of the set.
    Descriptor { offset: u32, word: u8 },
    /// What nothing has written.
    Undefined,
}

/// A word computed from what loads return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Expression {
    /// Some bytes of what a load found.
    Load { slot: u16, shift: u8, bytes: u8, signed: bool },
    /// An operation.
    Operation(Alu, Value, Value, Value),
}

/// The code of one wave as a tree: it branches where a decision rests on what a load returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    /// Each goes on with the next one unless it says otherwise.
    pub nodes: Vec<Node>,
    /// Every access of the tree.
    pub accesses: Vec<Access>,
    /// Every expression.
    pub expressions: Vec<Expression>,
    /// How many values loads return.
    pub slots: u16,
    /// Names of rules about bits that were used.
    pub facts: Vec<String>,
}

/// Something that a wave does.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Issues an access.
    Access(u16),
    /// Waits for these to be complete.
    Wait { line: u32, accesses: Vec<u16> },
    /// Arrives at the workgroup's barrier.
    Signal { line: u32 },
    /// Waits until all waves of the workgroup have arrived as often.
    Join { line: u32 },
    /// Drops lines.
    Cache { line: u32, cache: Cache, scope: u8 },
    /// Goes on at `other` where the value is 0.
    Decide { value: u16, other: u32 },
    /// The end.
    End,
}

/// Which unit performs an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// Through the vector cache.
    Vector,
    /// Through the scalar cache.
    Scalar,
    /// In the local data share.
    Lds,
}

/// An access by all lanes that take part.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The line of the text.
    pub line: u32,
    /// Which unit performs it.
    pub way: Way,
    /// Load, store or atomic.
    pub action: Action,
    /// Caches that it is taken past.
    pub skips: Skips,
    /// True if a wait for it waits for memory; otherwise it is complete where it arrives.
    pub waited: bool,
    /// What it touches, at most 64 parts.
    pub parts: Vec<Part>,
}

/// Caches that bits take an access past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skips {
    pub vector: bool,
    pub array: bool,
    pub scalar: bool,
}

/// What one lane touches within 8 aligned bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Where; of LDS the space is [`LDS`].
    pub place: Word,
    /// Where a load or atomic keeps the 8 bytes that it found.
    pub slot: Option<u16>,
    /// What is written: low and high word.
    pub data: [Value; 2],
    /// What a compare-exchange compares with.
    pub compare: [Value; 2],
}

/// The space of the local data share.
pub(crate) const LDS: crate::question::Space = crate::question::Space(u16::MAX);

impl Code {
    /// The value of an expression over what loads have returned.
    pub fn evaluate(&self, value: Value, slots: &[u64]) -> u32 {
        match value {
            Value::Word(word) => word,
            Value::Loaded(number) => match self.expressions.get(usize::from(number)) {
                Some(Expression::Load { slot, shift, bytes, signed }) => {
                    let cell = slots.get(usize::from(*slot)).copied().unwrap_or(0) >> shift;
                    match (bytes, signed) {
                        (1, false) => cell as u32 & 0xff,
                        (1, true) => Alu::SignByte.apply(cell as u32, 0, 0),
                        (2, false) => cell as u32 & 0xffff,
                        (2, true) => Alu::SignHalf.apply(cell as u32, 0, 0),
                        _ => cell as u32,
                    }
                }
                Some(Expression::Operation(alu, a, b, c)) => {
                    let [a, b, c] = [a, b, c].map(|value| self.evaluate(*value, slots));
                    alu.apply(a, b, c)
                }
                None => 0,
            },
            Value::Descriptors | Value::Descriptor { .. } | Value::Undefined => 0,
        }
    }
}
