//! A kernel that shows whether a device executes what it is given: it answers to a word.

use rspirv::dr::Operand;
use rspirv::spirv::{AddressingModel, Capability, LoopControl, MemoryModel, Op, StorageClass};

use crate::module::{Module, Preamble};

/// Words of the kernel's buffer: two that it leaves alone, and its answer.
pub const WORDS: u64 = 4;
/// Bytes of its push constants.
pub const BYTES: u32 = 4;

/// What it writes into the last two words where it is asked this: what memory held before does not matter, so that a device which
/// makes too little visible to it answers all the same.
pub const fn answered(asked: u32) -> [u32; 2] {
    [asked, !asked]
}

/// The words of the kernel, whose workgroups have one invocation: it stores its push constant, and the same with its bits turned over.
/// It needs nothing that any Vulkan device lacks.
pub fn kernel() -> Vec<u32> {
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
    let entry = module.id();
    module.begin(entry);
    let word = module.push_constant(asked, 0);
    let turned = module.on_ids(Op::Not, module.u32, &[word]);
    for (index, word) in [(2, word), (3, turned)] {
        let index = module.constant(index);
        let pointer = module.element(buffer, index);
        module.effect(Op::Store, [pointer, word].map(Operand::IdRef));
    }
    module.effect(Op::Return, []);
    module.finish(1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_keeps_the_rules_of_modules() {
        assert_eq!(crate::check::check(&super::kernel()).unwrap(), Vec::new());
    }
}
