//! A kernel that computes a checksum over words of a buffer, so that the host can verify its reads.
//!
//! The checksum is a sum, so that invocations add their parts in any order. Each summand is a hash of a word,
//! its position and a salt: exchanged words and words of an earlier dispatch change the sum. Each hash is
//! invertible, so that a change of a single word always changes the sum.

use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, Op, StorageClass, Word};

use crate::canary::add_to_word;
use crate::loops::LoopBuilder;
use crate::module::{ModuleBuilder, Preamble};

/// Invocations of a workgroup; every Vulkan device supports as many.
pub const WORKGROUP_SIZE: u32 = 64;
/// Bytes of the kernel's push constants.
pub const PUSH_CONSTANT_BYTES: u32 = 4 * FIELDS;
const FIELDS: u32 = 5;

/// A multiplicative hash step: shifts and factors of MurmurHash3's finalizer.
const HASH_STEPS: [(u32, u32); 2] = [(0x85eb_ca6b, 13), (0xc2b2_ae35, 16)];
const POSITION_FACTOR: u32 = 0x9e37_79b1;

/// The words of a checksum: every `step`th word of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordRange {
    /// Index of the first word.
    pub first: u32,
    /// The distance between two words, at least 1.
    pub step: u32,
    /// The number of words.
    pub count: u32,
}

impl WordRange {
    /// Returns the range of the first words of a buffer.
    pub fn first_words(count: u32) -> WordRange {
        WordRange { first: 0, step: 1, count }
    }

    /// Returns the checksum of these words of a buffer; `None` if the buffer is too short.
    pub fn checksum(self, words: &[u32], salt: u32) -> Option<u32> {
        let Some(last) = self.count.checked_sub(1) else { return Some(0) };
        let end = u64::from(self.first) + u64::from(last) * u64::from(self.step) + 1;
        let selected = words.get(self.first as usize..usize::try_from(end).ok()?)?;
        // Without a step, the loop vectorizes.
        Some(match self.step {
            1 => sum(selected.iter(), salt),
            step => sum(selected.iter().step_by((step as usize).max(1)), salt),
        })
    }

    /// Returns the checksum if all words of the range are `word`.
    pub fn checksum_of_constant(self, word: u32, salt: u32) -> u32 {
        (0..self.count).fold(0, |sum, position| sum.wrapping_add(hash_word(word, position, salt)))
    }
}

fn sum<'a>(words: impl Iterator<Item = &'a u32>, salt: u32) -> u32 {
    (0..).zip(words).fold(0, |sum: u32, (position, word)| sum.wrapping_add(hash_word(*word, position, salt)))
}

fn hash_word(word: u32, position: u32, salt: u32) -> u32 {
    let start = word ^ position.wrapping_mul(POSITION_FACTOR).wrapping_add(salt);
    HASH_STEPS.into_iter().fold(start, |word, (factor, shift)| {
        let word = word.wrapping_mul(factor);
        word ^ (word >> shift)
    })
}

/// Returns the push constants of a dispatch that adds the checksum of `range` to the word `place` of its
/// second buffer.
pub fn push_constants(range: WordRange, place: u32, salt: u32) -> Vec<u8> {
    let fields: [u32; FIELDS as usize] = [range.first, range.step, range.count, place, salt];
    fields.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the range, the place and the salt of push constants; `None` if they have another length.
pub fn parse_push_constants(bytes: &[u8]) -> Option<(WordRange, u32, u32)> {
    let fields: [u8; PUSH_CONSTANT_BYTES as usize] = bytes.try_into().ok()?;
    let (words, _) = fields.as_chunks::<4>();
    let [first, step, count, place, salt] = *words else { return None };
    let [first, step, count, place, salt] = [first, step, count, place, salt].map(u32::from_le_bytes);
    Some((WordRange { first, step, count }, place, salt))
}

/// Returns the words of the kernel. It reads its first buffer and adds to its second. Every Vulkan device
/// supports it.
///
/// A faulty driver may pass it the push constants of another dispatch, so it ends and stays within its
/// buffers for all values.
pub fn kernel() -> Vec<u32> {
    let mut module = ModuleBuilder::new(Preamble::minimal((1, 3)));
    let block = module.type_array_block(module.u32, 4, None);
    let [buffer, sums] = [(0, "words"), (1, "checksums")]
        .map(|(binding, name)| module.bound_variable(StorageClass::StorageBuffer, block, binding, name));
    let constants = module.push_constants(FIELDS, 0);
    let inputs = [BuiltIn::WorkgroupId, BuiltIn::NumWorkgroups].map(|input| module.built_in_vector(input));
    let local = module.built_in_word(BuiltIn::LocalInvocationIndex);
    let entry = module.id();
    module.begin_block(entry);
    let fields: [Word; FIELDS as usize] =
        std::array::from_fn(|field| module.push_constant(constants, field as u32));
    let [first, step, count, place, salt] = fields;
    let [[workgroup, _, _], [workgroups, _, _]] = inputs.map(|input| module.load_components(input));
    let local = module.emit_word(Op::Load, &[local]);
    let [size, zero, factor] = [WORKGROUP_SIZE, 0, POSITION_FACTOR].map(|value| module.constant(value));
    let before = module.emit_word(Op::IMul, &[workgroup, size]);
    let own = module.emit_word(Op::IAdd, &[before, local]);
    let invocations = module.emit_word(Op::IMul, &[workgroups, size]);
    // A count of another dispatch ends at the length of the buffer.
    let length = module.array_length(buffer);
    let is_shorter = module.emit_bool(Op::ULessThan, &[count, length]);
    let count = module.emit_word(Op::Select, &[is_shorter, count, length]);
    let within = |module: &mut ModuleBuilder, buffer: Word, index: Word| {
        let length = module.array_length(buffer);
        let is_within = module.emit_bool(Op::ULessThan, &[index, length]);
        module.emit_word(Op::Select, &[is_within, index, zero])
    };

    let mut word_loop = LoopBuilder::new(&mut module);
    let position = word_loop.carry_counter(&mut module, own, invocations);
    let (sum, next_sum) = word_loop.carry_word(&mut module, zero);
    let before = module.current_block();
    word_loop.enter(&mut module, before);
    let more = module.emit_bool(Op::ULessThan, &[position, count]);
    word_loop.begin_body_if(&mut module, more);
    let distance = module.emit_word(Op::IMul, &[position, step]);
    let index = module.emit_word(Op::IAdd, &[first, distance]);
    let index = within(&mut module, buffer, index);
    let pointer = module.word_pointer(buffer, index);
    let word = module.emit_word(Op::Load, &[pointer]);
    let mixed = module.emit_word(Op::IMul, &[position, factor]);
    let mixed = module.emit_word(Op::IAdd, &[mixed, salt]);
    let mut hash = module.emit_word(Op::BitwiseXor, &[word, mixed]);
    for (factor, shift) in HASH_STEPS {
        let [factor, shift] = [factor, shift].map(|value| module.constant(value));
        let product = module.emit_word(Op::IMul, &[hash, factor]);
        let high = module.emit_word(Op::ShiftRightLogical, &[product, shift]);
        hash = module.emit_word(Op::BitwiseXor, &[product, high]);
    }
    module.emit_value_as(next_sum, Op::IAdd, module.u32, [sum, hash].map(Operand::IdRef));
    word_loop.end_body(&mut module);

    let place = within(&mut module, sums, place);
    add_to_word(&mut module, sums, place, sum);
    module.emit_void(Op::Return, []);
    module.finish(WORKGROUP_SIZE).words
}
