//! A kernel that shows whether a device executes anything: it stores two words.

use rspirv::dr::Operand;
use rspirv::spirv::{AddressingModel, Capability, LoopControl, MemoryModel, Op, StorageClass};

use crate::module::{Module, Preamble};

/// What the first words of binding 0 hold behind a dispatch of the kernel: no two of a driver's own making.
pub const STORED: [u32; 2] = [0x5ca1_ab1e, !0x5ca1_ab1e];

/// The words of the kernel, whose workgroups have one invocation. It needs nothing that any Vulkan device lacks.
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
    let buffer = module.bound(StorageClass::StorageBuffer, block, 0, "stored");
    let entry = module.id();
    module.begin(entry);
    for (index, word) in (0..).zip(STORED) {
        let [index, word] = [index, word].map(|word| module.constant(word));
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
