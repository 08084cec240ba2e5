//! Live-variable analysis: the registers that may still be read at each instruction of a thread.

use litmus::{Compute, Flow, Instruction, InstructionKind};

use crate::registers::label_position;

/// The reads that make a register live.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LiveReads {
    /// All.
    All,
    /// All but those of computations whose results are not live.
    WithEffect,
}

/// Returns for each instruction of a thread the live registers, by register number. `observed` are the
/// registers that are live at the end of the thread.
pub fn live_registers(instructions: &[Instruction], observed: &[bool]) -> Vec<Vec<bool>> {
    analyze(instructions, observed, LiveReads::All)
}

/// As [`live_registers`], without registers that are read only to compute registers that are not live.
///
/// The delay of an exponential back-off is an example (faint variables; Nielson, Nielson and Hankin, *Principles of
/// Program Analysis*, 2.1.4). Execution from an instruction performs the same events, whatever values such registers
/// have.
pub fn strongly_live_registers(instructions: &[Instruction], observed: &[bool]) -> Vec<Vec<bool>> {
    analyze(instructions, observed, LiveReads::WithEffect)
}

fn analyze(instructions: &[Instruction], observed: &[bool], reads: LiveReads) -> Vec<Vec<bool>> {
    let mut live = vec![vec![false; observed.len()]; instructions.len()];
    let position = |label| label_position(instructions, label);
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
            let destinations = || kind.destinations().chain(compared).map(|register| usize::from(register.0));
            let has_effect = reads == LiveReads::All
                || !matches!(kind, InstructionKind::Compute(_))
                || destinations().any(|register| here[register]);
            for register in destinations() {
                here[register] = false;
            }
            for register in kind.registers_read().filter(|_| has_effect) {
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
