//! Checks of a whole HSA test: segments and work-groups, zero offsets, nested branches.

use crate::error::ParseError;
use crate::syntax::parser::Parser;
use crate::test::{
    ArithmeticOperation, Compute, Flow, InstructionKind, Operand, Reference, RegisterId, RegisterInit,
    Thread, ThreadId, ThreadPlace,
};

impl Parser<'_> {
    /// Reports errors that concern several threads.
    pub(in crate::syntax) fn check_hsa(&mut self) {
        let mut errors = Vec::new();
        self.check_work_groups(&mut errors);
        for thread in 0..self.test.threads.len() {
            let thread = self.test.thread(ThreadId(thread as u16));
            check_offsets(thread, &mut errors);
            check_branches(thread, &mut errors);
        }
        errors.into_iter().for_each(|error| self.errors.push(error));
    }

    /// Checks that each location of the group segment is accessed by one work-group only.
    fn check_work_groups(&self, errors: &mut Vec<ParseError>) {
        let mut owners = vec![None; self.test.locations.len()];
        for thread in &self.test.threads {
            let ThreadPlace::Device(place) = thread.place else { continue };
            let here = (place.queue_family, place.workgroup);
            for instruction in &thread.instructions {
                let Some(access) = instruction.kind.access() else { continue };
                let id = access.place.location;
                let location = self.test.location(id);
                if location.reference != Some(Reference::Workgroup) {
                    continue;
                }
                if *owners[usize::from(id.0)].get_or_insert(here) != here {
                    errors.push(ParseError::GroupAcrossWorkGroups {
                        name: location.name.clone(),
                        span: instruction.span,
                    });
                }
            }
        }
    }
}

/// Checks that a register in an address is zero by construction.
fn check_offsets(thread: &Thread, errors: &mut Vec<ParseError>) {
    let mut offsets: Vec<RegisterId> = Vec::new();
    for (index, instruction) in thread.instructions.iter().enumerate() {
        let Some(register) = instruction.kind.access().and_then(|access| access.place.address) else {
            continue;
        };
        let Some(declared) = thread.registers.get(usize::from(register.0)) else { continue };
        let before = &thread.instructions[..index];
        let assigned = before.iter().any(|earlier| earlier.kind.destinations().any(|own| own == register));
        if declared.init != RegisterInit::Constant(0) && !assigned {
            let register = declared.name.clone();
            errors.push(ParseError::OffsetNotZero { register, span: instruction.span });
        }
        if !offsets.contains(&register) {
            offsets.push(register);
        }
    }
    for instruction in &thread.instructions {
        for register in instruction.kind.destinations() {
            if offsets.contains(&register) && !is_zero(&instruction.kind) {
                let name = thread.registers.get(usize::from(register.0)).map_or("?", |r| &r.name).to_owned();
                errors.push(ParseError::OffsetNotZero { register: name, span: instruction.span });
            }
        }
    }
}

fn is_zero(kind: &InstructionKind) -> bool {
    let InstructionKind::Compute(Compute::Arithmetic { operation, left, right, .. }) = kind else {
        return false;
    };
    match operation {
        ArithmeticOperation::And => [left, right].contains(&&Operand::Constant(0)),
        ArithmeticOperation::Xor | ArithmeticOperation::Subtract => left == right,
        _ => false,
    }
}

/// Checks that branches go forward and nest properly.
fn check_branches(thread: &Thread, errors: &mut Vec<ParseError>) {
    // The ends of the enclosing branches, innermost last.
    let mut open = Vec::new();
    for (index, instruction) in thread.instructions.iter().enumerate() {
        let InstructionKind::Flow(Flow::BranchIf { target, .. }) = instruction.kind else { continue };
        // A label without a position is reported where it is used.
        let Some(end) = thread.label_index(target) else { continue };
        let name = |label: crate::test::LabelId| thread.label_name(label).to_owned();
        if end < index {
            errors.push(ParseError::BackwardBranch { name: name(target), span: instruction.span });
            continue;
        }
        while open.last().is_some_and(|(outer, _)| *outer < index) {
            open.pop();
        }
        match open.last() {
            Some((outer, label)) if *outer < end => {
                errors.push(ParseError::CrossingBranches { name: name(*label), span: instruction.span });
            }
            _ => open.push((end, target)),
        }
    }
}
