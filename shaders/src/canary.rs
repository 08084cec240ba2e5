//! A kernel that shows whether a device executes what it is given: it answers to a word.

use rspirv::dr::Operand;
use rspirv::spirv::{AddressingModel, Capability, LoopControl, MemoryModel, Op, StorageClass};

use crate::module::{Module, Preamble};

/// Words of the kernel's buffer.
pub const WORDS: u64 = 2;

/// What the buffer holds behind a dispatch that found `asked` in its first word.
pub const fn answered(asked: u32) -> [u32; 2] {
    [asked, !asked]
}

/// The words of the kernel, whose workgroups have one invocation: it stores the bits of the first word of binding 0, turned over,
/// into the second. It needs nothing that any Vulkan device lacks.
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
    let buffer = module.bound(StorageClass::StorageBuffer, block, 0, "asked and answered");
    let entry = module.id();
    module.begin(entry);
    let [asked, answer] = [0, 1].map(|index| {
        let index = module.constant(index);
        module.element(buffer, index)
    });
    let word = module.on_ids(Op::Load, module.u32, &[asked]);
    let turned = module.on_ids(Op::Not, module.u32, &[word]);
    module.effect(Op::Store, [answer, turned].map(Operand::IdRef));
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
