//! Kernels that show whether a device executes its commands: they compute an answer from a word.

use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, Dim, ImageFormat, MemorySemantics, Op, Scope, StorageClass, Word};

use crate::module::{AtomicOrder, ModuleBuilder, Preamble};

/// Words of the buffer, or of each workgroup if they [count](counting_kernel): two unused words, or one and
/// a counter, and the answer.
pub const WORDS: u64 = 4;
pub const PUSH_CONSTANT_BYTES: u32 = 4;
/// Words after those of all workgroups of the [counting kernel](counting_kernel): each invocation outside the
/// dispatch adds 1 to this word.
pub const OVERFLOW_WORDS: u64 = 1;

/// Returns the push constants of the [counting kernel](counting_kernel): the input word, and the number of
/// workgroups in the dispatch.
pub fn counting_push_constants(input: u32, workgroups: u32) -> Vec<u8> {
    [input, workgroups].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the last two words for this input. They do not depend on memory, so that a device with incorrect
/// visibility still answers.
pub const fn expected_answer(input: u32) -> [u32; 2] {
    [input, !input]
}

/// Returns true if a workgroup [counted](counting_kernel) more than once, by its words. The words
/// contained the input before. Only sums with no other explanation count: with incorrect visibility, a device
/// may add to another value.
pub fn is_repeated(words: &[u32], input: u32) -> bool {
    let after = |times: u32| input.wrapping_mul(1 + times);
    let repeated =
        |tally: &u32| *tally != after(1) && (2..=MAX_REPETITIONS).any(|times| *tally == after(times));
    words.get(1).is_some_and(repeated)
}

/// The number of executions that is distinguishable from other values of a counter.
const MAX_REPETITIONS: u32 = 8;

/// Returns the words of the kernel, with one invocation per workgroup. It stores its push constant and the
/// complement. Every Vulkan device supports it.
pub fn kernel() -> Vec<u32> {
    build_kernel(false, false)
}

/// Returns the kernel for several workgroups: each answers in its own words, and adds the push constant to
/// one of them. An invocation outside the dispatch, by its workgroup or its local index, only adds 1 to the
/// [overflow word](OVERFLOW_WORDS).
pub fn counting_kernel() -> Vec<u32> {
    build_kernel(true, false)
}

/// Returns the counting kernel with a two-dimensional image of unsigned words, binding 1. Each workgroup also
/// writes the complement to the texel with its number in the first row.
pub fn counting_kernel_with_image() -> Vec<u32> {
    build_kernel(true, true)
}

fn build_kernel(counts: bool, has_image: bool) -> Vec<u32> {
    let mut module = ModuleBuilder::new(Preamble::minimal((1, 3)));
    let block = module.type_array_block(module.u32, 4, None);
    let buffer = module.bound_variable(StorageClass::StorageBuffer, block, 0, "answers");
    let constants = module.push_constants(if counts { 2 } else { 1 }, 0);
    let inputs = counts.then(|| {
        let workgroup = module.built_in_vector(BuiltIn::WorkgroupId);
        (workgroup, module.built_in_word(BuiltIn::LocalInvocationIndex))
    });
    let image = has_image.then(|| {
        let ty = module.type_image(module.u32, Dim::Dim2D, ImageFormat::R32ui);
        (ty, module.bound_variable(StorageClass::UniformConstant, ty, 1, "texels"))
    });
    let entry = module.id();
    module.begin_block(entry);
    let word = module.push_constant(constants, 0);
    let complement = module.emit_on_ids(Op::Not, module.u32, &[word]);
    let first = inputs.map(|(workgroup, local)| {
        let [workgroup, y, z] = module.load_components(workgroup);
        let local = module.emit_word(Op::Load, &[local]);
        let workgroups = module.push_constant(constants, 1);
        let [words, zero] = [WORDS as u32, 0].map(|value| module.constant(value));
        let others = module.emit_word(Op::BitwiseOr, &[y, z]);
        let others = module.emit_word(Op::BitwiseOr, &[others, local]);
        let nonzero_index = module.emit_bool(Op::INotEqual, &[others, zero]);
        let surplus = module.emit_bool(Op::UGreaterThanEqual, &[workgroup, workgroups]);
        let outside = module.emit_bool(Op::LogicalOr, &[surplus, nonzero_index]);
        let [counting, answering] = std::array::from_fn(|_| module.id());
        module.begin_if(outside, counting, answering);
        let overflow = module.emit_word(Op::IMul, &[workgroups, words]);
        let one = module.constant(1);
        add_to_word(&mut module, buffer, overflow, one);
        module.emit_void(Op::Return, []);
        module.begin_block(answering);
        if let Some((ty, variable)) = image {
            let [pair, texels] = [2, 4].map(|count| module.type_vector(module.u32, count));
            let place = module.emit_on_ids(Op::CompositeConstruct, pair, &[workgroup, zero]);
            let texel = module.emit_on_ids(Op::CompositeConstruct, texels, &[complement; 4]);
            let image = module.emit_on_ids(Op::Load, ty, &[variable]);
            module.emit_void(Op::ImageWrite, [image, place, texel].map(Operand::IdRef));
        }
        module.emit_word(Op::IMul, &[workgroup, words])
    });
    for (index, word) in [(2, word), (3, complement)] {
        let mut index = module.constant(index);
        if let Some(first) = first {
            index = module.emit_word(Op::IAdd, &[first, index]);
        }
        let pointer = module.word_pointer(buffer, index);
        module.store(pointer, word);
    }
    if let Some(first) = first {
        let one = module.constant(1);
        let tally = module.emit_word(Op::IAdd, &[first, one]);
        add_to_word(&mut module, buffer, tally, word);
    }
    module.emit_void(Op::Return, []);
    module.finish(1).words
}

/// Adds to a word of a buffer by a relaxed atomic.
pub(crate) fn add_to_word(module: &mut ModuleBuilder, buffer: Word, index: Word, value: Word) {
    let [scope, semantics] =
        [Scope::Device as u32, MemorySemantics::RELAXED.bits()].map(|value| module.constant(value));
    let pointer = module.word_pointer(buffer, index);
    module.atomic_add(pointer, AtomicOrder { scope, semantics }, value);
}
