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
    /// Returns the instruction.
    pub fn op(self) -> Op {
        match self {
            WordOperation::Add => Op::IAdd,
            WordOperation::Multiply => Op::IMul,
            WordOperation::Divide => Op::UDiv,
            WordOperation::Remainder => Op::UMod,
        }
    }
}

/// The domain of the formulas: numbers, or the instructions of a kernel under construction.
pub(crate) trait Arithmetic {
    /// A word, or its id in a module.
    type Word: Copy;

    fn number(&mut self, value: u32) -> Self::Word;
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
pub(crate) fn class_and_group<A: Arithmetic>(
    of: &mut A,
    workgroup: A::Word,
    classes: u32,
) -> (A::Word, A::Word) {
    let pairing = of.parameter(Parameter::Pairing);
    let classes = of.number(classes);
    let run = of.divide(workgroup, pairing);
    let turn = of.parameter(Parameter::Turn);
    let turned = of.add(run, turn);
    let class = of.remainder(turned, classes);
    let lap = of.divide(run, classes);
    let first = of.multiply(lap, pairing);
    let rest = of.remainder(workgroup, pairing);
    (class, of.add(first, rest))
}

/// The instance slot of an invocation.
#[derive(Clone, Copy)]
pub(crate) struct Seat<W> {
    /// Index of the instance within a round.
    pub instance: W,
    /// Index of the slot in its workgroup.
    pub lane: W,
    /// Instances of a round.
    pub round_size: W,
    /// Instances of the dispatch.
    pub total: W,
}

/// Returns the seat of a slot of a class and a group: the coprime permutation of groups and lanes. Classes of
/// earlier kernels come before `first_class`.
pub(crate) fn seat<A: Arithmetic>(
    of: &mut A,
    (lanes, first_class): (u32, u32),
    (class, group): (A::Word, A::Word),
    slot: A::Word,
) -> Seat<A::Word> {
    let groups = of.parameter(Parameter::Groups);
    let lanes = of.number(lanes);
    let class = match first_class {
        0 => class,
        first => {
            let first = of.number(first);
            of.add(class, first)
        }
    };
    let [group, lane] = [
        (group, Parameter::GroupMultiplier, Parameter::GroupOffset, groups),
        (slot, Parameter::LaneMultiplier, Parameter::LaneOffset, lanes),
    ]
    .map(|(index, multiplier, offset, modulus)| {
        let multiplier = of.parameter(multiplier);
        let offset = of.parameter(offset);
        let scaled = of.multiply(index, multiplier);
        let shift = of.multiply(class, offset);
        let sum = of.add(scaled, shift);
        of.remainder(sum, modulus)
    });
    let first = of.multiply(group, lanes);
    let instance = of.add(first, lane);
    let round_size = of.multiply(groups, lanes);
    let rounds = of.parameter(Parameter::Rounds);
    Seat { instance, lane, round_size, total: of.multiply(rounds, round_size) }
}

/// Returns the instance of a seat in a round: `k × G × L + i`.
pub(crate) fn instance_of<A: Arithmetic>(of: &mut A, seat: &Seat<A::Word>, round: A::Word) -> A::Word {
    let earlier = of.multiply(round, seat.round_size);
    of.add(earlier, seat.instance)
}

/// Returns the unit of a storage: `n × stride + s × spacing`, where `first` is the first summand.
pub(crate) fn unit<A: Arithmetic>(of: &mut A, first: A::Word, storage: A::Word) -> A::Word {
    let spacing = of.parameter(Parameter::Spacing);
    let within = of.multiply(storage, spacing);
    of.add(first, within)
}

/// Returns the word of a result slot: `r × total + n`.
pub(crate) fn result_word<A: Arithmetic>(
    of: &mut A,
    slot: A::Word,
    total: A::Word,
    instance: A::Word,
) -> A::Word {
    let first = of.multiply(slot, total);
    of.add(first, instance)
}

/// Returns a hash of a kernel's identity, of the lengths and salts of its memory and of all parameters. It is
/// odd, so that no number of executions except one leaves the same sum.
pub(crate) fn receipt<A: Arithmetic>(of: &mut A, identity: A::Word, memory: &[A::Word]) -> A::Word {
    let [factor, two] = [RECEIPT_FACTOR, 2].map(|number| of.number(number));
    let mut words = memory.to_vec();
    words.extend(Parameter::ALL.map(|parameter| of.parameter(parameter)));
    let mut sum = identity;
    for word in words {
        let scaled = of.multiply(sum, factor);
        sum = of.add(scaled, word);
    }
    let one = of.number(1);
    let even = of.multiply(sum, two);
    of.add(even, one)
}

/// Odd and large, so that small differences of two parameters do not cancel out.
const RECEIPT_FACTOR: u32 = 0x9e37_79b1;

/// Arithmetic on numbers.
struct Numbers([u32; Parameters::WORDS as usize]);

impl Arithmetic for Numbers {
    type Word = u32;

    fn number(&mut self, value: u32) -> u32 {
        value
    }

    fn parameter(&mut self, parameter: Parameter) -> u32 {
        self.0.get(parameter as usize).copied().unwrap_or_default()
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
        class_and_group(&mut Numbers(self.words()), workgroup, classes)
    }

    /// Returns the instance of a slot of a class and a group in a round, for this many lanes. The class
    /// counts those of all concurrent kernels.
    pub fn instance(&self, lanes: u32, class_and_group: (u32, u32), slot: u32, round: u32) -> u32 {
        let numbers = &mut Numbers(self.words());
        let seat = seat(numbers, (lanes, 0), class_and_group, slot);
        instance_of(numbers, &seat, round)
    }

    /// Returns the receipt of these parameters, by a kernel with this identity. `memory` has the lengths of its
    /// buffers, then the salts that it reads.
    pub fn receipt(&self, identity: u32, memory: &[u32]) -> u32 {
        receipt(&mut Numbers(self.words()), identity, memory)
    }

    /// Returns the instances of the dispatch, for this many lanes.
    pub fn instances(&self, lanes: u32) -> u32 {
        seat(&mut Numbers(self.words()), (lanes, 0), (0, 0), 0).total
    }

    /// Returns the index of a storage's unit of location memory.
    pub fn unit(&self, instance: u32, storage: u32) -> u32 {
        let numbers = &mut Numbers(self.words());
        let first = numbers.multiply(instance, self.stride);
        unit(numbers, first, storage)
    }

    /// Returns the index of the word of a result slot, for this many lanes.
    pub fn result_word(&self, lanes: u32, slot: u32, instance: u32) -> u32 {
        let total = self.instances(lanes);
        result_word(&mut Numbers(self.words()), slot, total, instance)
    }
}
