//! Live-variable analysis: the registers that may still be read at each instruction of a thread.

use litmus::{Compute, Flow, Instruction, InstructionKind, LabelId};

/// Returns for each instruction of a thread the live registers, by register number. `observed` are the
/// registers that are live at the end of the thread.
pub fn live_registers(instructions: &[Instruction], observed: &[bool]) -> Vec<Vec<bool>> {
    let mut live = vec![vec![false; observed.len()]; instructions.len()];
    let position = |label: LabelId| {
        instructions.iter().position(|i| i.kind == InstructionKind::Flow(Flow::Label(label)))
    };
    loop {
        let mut changed = false;
        for (at, instruction) in instructions.iter().enumerate().rev() {
            // After the last instruction, the observed registers are live.
            let follows =
                |next: Option<usize>| next.and_then(|next| live.get(next)).map_or(observed, Vec::as_slice);
            let kind = &instruction.kind;
            let mut here = if let InstructionKind::Flow(Flow::Goto(target)) = kind {
                follows(position(*target)).to_vec()
            } else {
                follows(Some(at + 1)).to_vec()
            };
            if let InstructionKind::Flow(Flow::Branch { target, .. } | Flow::BranchIf { target, .. }) = kind {
                here.iter_mut().zip(follows(position(*target))).for_each(|(here, there)| *here |= there);
            }
            let compared = match kind {
                InstructionKind::Compute(Compute::Compare { destination, .. }) => Some(*destination),
                _ => None,
            };
            for register in kind.destinations().chain(compared) {
                here[usize::from(register.0)] = false;
            }
            for register in kind.registers_read() {
                here[usize::from(register.0)] = true;
            }
            if live[at] != here {
                live[at] = here;
                changed = true;
            }
        }
        if !changed {
            return live;
        }
    }
}
