//! The formulas of the contract, each written once: over numbers for the runner, and over the words of a
//! module for the compiler.

use rspirv::spirv::Op;

use super::parameters::{Parameter, Parameters};

/// An operation on two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordOperation {
    Add,
    Multiply,
    Divide,
    Remainder,
}

impl WordOperation {
    pub fn opcode(self) -> Op {
        match self {
            WordOperation::Add => Op::IAdd,
            WordOperation::Multiply => Op::IMul,
            WordOperation::Divide => Op::UDiv,
            WordOperation::Remainder => Op::UMod,
        }
    }
}

/// The domain of the formulas: numbers, or the instructions of a kernel under construction.
pub(crate) trait WordArithmetic {
    /// A word, or its id in a module.
    type Word: Copy;

    fn constant(&mut self, value: u32) -> Self::Word;
    fn parameter(&mut self, parameter: Parameter) -> Self::Word;
    fn apply(&mut self, operation: WordOperation, left: Self::Word, right: Self::Word) -> Self::Word;

    fn add(&mut self, left: Self::Word, right: Self::Word) -> Self::Word {
        self.apply(WordOperation::Add, left, right)
    }
    fn multiply(&mut self, left: Self::Word, right: Self::Word) -> Self::Word {
        self.apply(WordOperation::Multiply, left, right)
    }
    fn divide(&mut self, left: Self::Word, right: Self::Word) -> Self::Word {
        self.apply(WordOperation::Divide, left, right)
    }
    fn remainder(&mut self, left: Self::Word, right: Self::Word) -> Self::Word {
        self.apply(WordOperation::Remainder, left, right)
    }
}

/// Returns class `(w / p + t) mod C` and group `(w / (p × C)) × p + w mod p` of workgroup `w`.
pub(crate) fn class_and_group<A: WordArithmetic>(
    arithmetic: &mut A,
    workgroup: A::Word,
    classes: u32,
) -> (A::Word, A::Word) {
    let pairing = arithmetic.parameter(Parameter::Pairing);
    let classes = arithmetic.constant(classes);
    let run = arithmetic.divide(workgroup, pairing);
    let turn = arithmetic.parameter(Parameter::Turn);
    let turned = arithmetic.add(run, turn);
    let class = arithmetic.remainder(turned, classes);
    let lap = arithmetic.divide(run, classes);
    let first = arithmetic.multiply(lap, pairing);
    let rest = arithmetic.remainder(workgroup, pairing);
    (class, arithmetic.add(first, rest))
}

/// The instance slot of an invocation.
#[derive(Clone, Copy)]
pub(crate) struct InstanceSlot<W> {
    /// Index of the instance within a round.
    pub instance: W,
    /// Index of the slot in its workgroup.
    pub lane: W,
    pub round_size: W,
    /// Instances of the dispatch.
    pub total: W,
}

/// Returns the instance slot of a class and a group: the coprime permutation of groups and lanes. Classes of
/// earlier kernels come before `first_class`.
pub(crate) fn instance_slot<A: WordArithmetic>(
    arithmetic: &mut A,
    (lanes, first_class): (u32, u32),
    (class, group): (A::Word, A::Word),
    slot: A::Word,
) -> InstanceSlot<A::Word> {
    let groups = arithmetic.parameter(Parameter::Groups);
    let lanes = arithmetic.constant(lanes);
    let class = match first_class {
        0 => class,
        first => {
            let first = arithmetic.constant(first);
            arithmetic.add(class, first)
        }
    };
    let [group, lane] = [
        (group, Parameter::GroupMultiplier, Parameter::GroupOffset, groups),
        (slot, Parameter::LaneMultiplier, Parameter::LaneOffset, lanes),
    ]
    .map(|(index, multiplier, offset, modulus)| {
        let multiplier = arithmetic.parameter(multiplier);
        let offset = arithmetic.parameter(offset);
        let scaled = arithmetic.multiply(index, multiplier);
        let shift = arithmetic.multiply(class, offset);
        let sum = arithmetic.add(scaled, shift);
        arithmetic.remainder(sum, modulus)
    });
    let first = arithmetic.multiply(group, lanes);
    let instance = arithmetic.add(first, lane);
    let round_size = arithmetic.multiply(groups, lanes);
    let rounds = arithmetic.parameter(Parameter::Rounds);
    InstanceSlot { instance, lane, round_size, total: arithmetic.multiply(rounds, round_size) }
}

/// Returns the instance of a slot in a round: `k × G × L + i`.
pub(crate) fn instance_index<A: WordArithmetic>(
    arithmetic: &mut A,
    seat: &InstanceSlot<A::Word>,
    round: A::Word,
) -> A::Word {
    let earlier = arithmetic.multiply(round, seat.round_size);
    arithmetic.add(earlier, seat.instance)
}

/// Returns the unit of a storage: `n × stride + s × spacing`, where `first` is the first summand.
pub(crate) fn unit_index<A: WordArithmetic>(arithmetic: &mut A, first: A::Word, storage: A::Word) -> A::Word {
    let spacing = arithmetic.parameter(Parameter::Spacing);
    let within = arithmetic.multiply(storage, spacing);
    arithmetic.add(first, within)
}

/// Returns the word of a result slot: `r × total + n`.
pub(crate) fn result_word<A: WordArithmetic>(
    arithmetic: &mut A,
    slot: A::Word,
    total: A::Word,
    instance: A::Word,
) -> A::Word {
    let first = arithmetic.multiply(slot, total);
    arithmetic.add(first, instance)
}

/// Returns a hash of a kernel's identity, of the lengths and salts of its memory and of all parameters. It is
/// odd, so that no number of executions except one leaves the same sum.
pub(crate) fn receipt_hash<A: WordArithmetic>(
    arithmetic: &mut A,
    identity: A::Word,
    memory: &[A::Word],
) -> A::Word {
    let [factor, two] = [RECEIPT_FACTOR, 2].map(|number| arithmetic.constant(number));
    let mut words = memory.to_vec();
    words.extend(Parameter::ALL.map(|parameter| arithmetic.parameter(parameter)));
    let mut sum = identity;
    for word in words {
        let scaled = arithmetic.multiply(sum, factor);
        sum = arithmetic.add(scaled, word);
    }
    let one = arithmetic.constant(1);
    let even = arithmetic.multiply(sum, two);
    arithmetic.add(even, one)
}

/// Odd and large, so that small differences of two parameters do not cancel out.
const RECEIPT_FACTOR: u32 = 0x9e37_79b1;

/// Arithmetic on numbers.
struct ConcreteArithmetic<'p>(&'p Parameters);

impl WordArithmetic for ConcreteArithmetic<'_> {
    type Word = u32;

    fn constant(&mut self, value: u32) -> u32 {
        value
    }

    fn parameter(&mut self, parameter: Parameter) -> u32 {
        self.0.word(parameter)
    }

    /// Computes like a device, where division by 0 is undefined.
    fn apply(&mut self, operation: WordOperation, left: u32, right: u32) -> u32 {
        match operation {
            WordOperation::Add => left.wrapping_add(right),
            WordOperation::Multiply => left.wrapping_mul(right),
            WordOperation::Divide => left.checked_div(right).unwrap_or_default(),
            WordOperation::Remainder => left.checked_rem(right).unwrap_or_default(),
        }
    }
}

/// The formulas on numbers. No product may exceed 32 bits.
impl Parameters {
    /// Returns class and group of a workgroup, for this many classes.
    pub fn class_and_group(&self, workgroup: u32, classes: u32) -> (u32, u32) {
        class_and_group(&mut ConcreteArithmetic(self), workgroup, classes)
    }

    /// Returns the instance of a slot of a class and a group in a round, for this many lanes. The class
    /// counts those of all concurrent kernels.
    pub fn instance_index(&self, lanes: u32, class_and_group: (u32, u32), slot: u32, round: u32) -> u32 {
        let numbers = &mut ConcreteArithmetic(self);
        let seat = instance_slot(numbers, (lanes, 0), class_and_group, slot);
        instance_index(numbers, &seat, round)
    }

    /// Returns the receipt of these parameters, by a kernel with this identity. `memory` has the lengths of its
    /// buffers, then the salts that it reads.
    pub fn receipt(&self, identity: u32, memory: &[u32]) -> u32 {
        receipt_hash(&mut ConcreteArithmetic(self), identity, memory)
    }

    /// Returns the instances of the dispatch, for this many lanes.
    pub fn instance_count(&self, lanes: u32) -> u32 {
        instance_slot(&mut ConcreteArithmetic(self), (lanes, 0), (0, 0), 0).total
    }

    /// Returns the index of a storage's unit of location memory.
    pub fn unit_index(&self, instance: u32, storage: u32) -> u32 {
        let numbers = &mut ConcreteArithmetic(self);
        let first = numbers.multiply(instance, self.stride);
        unit_index(numbers, first, storage)
    }

    /// Returns the index of the word of a result slot, for this many lanes.
    pub fn result_word(&self, lanes: u32, slot: u32, instance: u32) -> u32 {
        let total = self.instance_count(lanes);
        result_word(&mut ConcreteArithmetic(self), slot, total, instance)
    }
}
