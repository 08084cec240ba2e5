//! Kernels that show whether a device executes its commands: they compute an answer from a word.

use rspirv::dr::Operand;
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, LoopControl, MemoryModel, MemorySemantics, Op, Scope, StorageClass,
};

use crate::module::{Module, Preamble};

/// Words of the kernel's buffer, or of each workgroup if they [count](counting): two unused words, or one and
/// a counter, and the answer.
pub const WORDS: u64 = 4;
/// Bytes of its push constants.
pub const BYTES: u32 = 4;

/// Returns the last two words for this input. They do not depend on memory, so that a device with incorrect
/// visibility still answers.
pub const fn answered(asked: u32) -> [u32; 2] {
    [asked, !asked]
}

/// Returns true if the words of a workgroup show that it [counted](counting) more than once. The words
/// contained the input before. Only sums with no other explanation count: with incorrect visibility, a device
/// may add to another value.
pub fn repeats(words: &[u32], asked: u32) -> bool {
    let after = |times: u32| asked.wrapping_mul(1 + times);
    let repeated = |tally: &u32| *tally != after(1) && (2..=MOST_TOLD).any(|times| *tally == after(times));
    words.get(1).is_some_and(repeated)
}

/// The number of executions that is distinguishable from other values of a counter.
const MOST_TOLD: u32 = 8;

/// Returns the words of the kernel, with one invocation per workgroup. It stores its push constant and the
/// complement. Every Vulkan device supports it.
pub fn kernel() -> Vec<u32> {
    of_workgroups(false)
}

/// Returns the kernel for several workgroups: each answers in its own words, and adds the push constant to
/// one of them.
pub fn counting() -> Vec<u32> {
    of_workgroups(true)
}

fn of_workgroups(counts: bool) -> Vec<u32> {
    let mut module = Module::new(Preamble {
        version: (1, 3),
        capabilities: vec![Capability::Shader],
        extensions: Vec::new(),
        addressing: AddressingModel::Logical,
        model: MemoryModel::GLSL450,
        loops: LoopControl::NONE,
    });
    let block = module.block_of(module.u32, 4, None);
    let buffer = module.bound(StorageClass::StorageBuffer, block, 0, "answers");
    let asked = module.push_constants(1, 0);
    let workgroup = counts.then(|| module.built_in_vector(BuiltIn::WorkgroupId));
    let entry = module.id();
    module.begin(entry);
    let word = module.push_constant(asked, 0);
    let turned = module.on_ids(Op::Not, module.u32, &[word]);
    let first = workgroup.map(|workgroup| {
        let workgroup = module.load_x(workgroup);
        let words = module.constant(WORDS as u32);
        module.word(Op::IMul, &[workgroup, words])
    });
    for (index, word) in [(2, word), (3, turned)] {
        let mut index = module.constant(index);
        if let Some(first) = first {
            index = module.word(Op::IAdd, &[first, index]);
        }
        let pointer = module.element(buffer, index);
        module.effect(Op::Store, [pointer, word].map(Operand::IdRef));
    }
    if let Some(first) = first {
        let [one, scope, relaxed] =
            [1, Scope::Device as u32, MemorySemantics::RELAXED.bits()].map(|value| module.constant(value));
        let tally = module.word(Op::IAdd, &[first, one]);
        let pointer = module.element(buffer, tally);
        let operands = [
            Operand::IdRef(pointer),
            Operand::IdScope(scope),
            Operand::IdMemorySemantics(relaxed),
            Operand::IdRef(word),
        ];
        module.value(Op::AtomicIAdd, module.u32, operands);
    }
    module.effect(Op::Return, []);
    module.finish(1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernels_keep_the_rules_of_modules() {
        for kernel in [super::kernel(), super::counting()] {
            assert_eq!(crate::check::check(&kernel).unwrap(), Vec::new());
        }
    }

    #[test]
    fn a_tally_tells_repetitions_and_nothing_else() {
        let asked = 0x5ca1_ab1e;
        let repeats = |tally: u32| super::repeats(&[asked, tally, asked, !asked], asked);
        for once in [0, 1, asked, asked.wrapping_mul(2), !asked, 0x9e37_79b1] {
            assert!(!repeats(once), "{once:#x}");
        }
        assert!((3..8).all(|times| repeats(asked.wrapping_mul(times))));
        assert!(!super::repeats(&[], asked) && !super::repeats(&[0; 4], 0));
    }
}
