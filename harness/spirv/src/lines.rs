//! Source lines of instructions without debug lines.

use std::collections::HashMap;

use rspirv::spirv::Op;

use crate::module::{SpirvFunction, SpirvModule};

impl SpirvModule {
    /// Gives instructions at the start of a block the line of the branch to it.
    ///
    /// A debug line ends with its block. After a selection or loop, the line is that of the header, because
    /// the same statement continues there.
    pub(crate) fn inherit_lines(&self, function: &mut SpirvFunction) {
        let (mut of_blocks, mut inherited) = (HashMap::new(), 0);
        let SpirvFunction { code, types, .. } = function;
        for instruction in code {
            if instruction.op == Op::Label {
                inherited = of_blocks.get(&instruction.result).copied().unwrap_or(0);
                continue;
            }
            if instruction.line == 0 {
                instruction.line = inherited;
            }
            let line = instruction.line;
            match instruction.op {
                Op::SelectionMerge | Op::LoopMerge => {
                    of_blocks.extend(self.operands_of(instruction).first().map(|merge| (*merge, line)));
                }
                Op::Branch | Op::BranchConditional | Op::Switch => {
                    for target in self.successors(types, instruction) {
                        of_blocks.entry(target).or_insert(line);
                    }
                }
                _ => {}
            }
        }
    }
}
