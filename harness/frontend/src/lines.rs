//! Source lines of instructions that have none of their own.

use std::collections::HashMap;

use rspirv::spirv::Op;

use crate::module::{Function, Module};

impl Module {
    /// Lines do not reach beyond a block. What stands first in a block without a line of its own has that of the branch to it,
    /// and behind a selection or a loop that of its header: there a statement goes on whose value has two sides.
    pub(crate) fn inherit_lines(&self, function: &mut Function) {
        let (mut of_blocks, mut inherited) = (HashMap::new(), 0);
        for instruction in &mut function.code {
            if instruction.op == Op::Label {
                inherited = of_blocks.get(&instruction.result).copied().unwrap_or(0);
                continue;
            }
            if instruction.line == 0 {
                instruction.line = inherited;
            }
            let (line, operands) = (instruction.line, self.operands(instruction));
            match instruction.op {
                Op::SelectionMerge | Op::LoopMerge => {
                    of_blocks.extend(operands.first().map(|merge| (*merge, line)));
                }
                Op::Branch | Op::BranchConditional | Op::Switch => {
                    for target in operands {
                        of_blocks.entry(*target).or_insert(line);
                    }
                }
                _ => {}
            }
        }
    }
}
