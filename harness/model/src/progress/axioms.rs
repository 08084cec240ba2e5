//! Queries the axioms of a memory model for spin loops that never end.
//!
//! Each read-only loop is cut to its last iteration. A hang is an execution in which every thread has ended
//! or reads the newest values in such an iteration. All unfinished threads spin for ever there, so every
//! progress model is satisfied.
//!
//! In contrast to [`super::relaxed`], this covers load buffering and any model. It is inconclusive for loops
//! that write.

use litmus::{
    AccessKind, ArithmeticOperation, Compute, Flow, Instruction, InstructionKind, Label, LabelId, LocationId,
    MemoryAccess, Observable, Operand, Register, RegisterId, RegisterInit, Term, Test, ThreadId, ThreadPlace,
};

use super::code::{ProgressCode, ProgressOperation};
use crate::{Model, PredictError, PredictOptions, predict};

/// Result of the query.
pub(super) enum SpinAnswer {
    /// Threads that may spin for ever together, with the line of the loop's jump.
    Hang(Vec<(usize, u32)>),
    /// No thread can spin for ever.
    Ends,
    /// A loop has an unsupported form, or the model did not answer in time.
    Unknown,
}

/// Queries `model` for a hang of `test`.
pub(super) fn decide_spin_hang(
    test: &Test,
    code: &ProgressCode,
    model: &Model,
    options: &PredictOptions,
) -> Result<SpinAnswer, PredictError> {
    let Some(cut) = SingleSpinTest::from_test(test, code) else { return Ok(SpinAnswer::Unknown) };
    if cut.spins.is_empty() {
        return Ok(SpinAnswer::Ends);
    }
    let prediction = predict(&cut.test, model, options)?;
    let observable_index = |observable| prediction.observables.iter().position(|known| *known == observable);
    for (outcome, predicted) in &prediction.outcomes {
        if !predicted.allowed {
            continue;
        }
        let value = |observable| {
            observable_index(observable).and_then(|index| outcome.0.get(index)).map(|value| value.0)
        };
        let spinning: Vec<&SpinLoop> = cut
            .spins
            .iter()
            .filter(|spin| value(Observable::Register(spin.thread, spin.spin_register)) == Some(1))
            .collect();
        // Eventual visibility: a thread that spins for ever eventually reads the last write. The
        // loop depends only on values, so equal values suffice.
        let reads_newest = spinning.iter().all(|spin| {
            spin.reads.iter().all(|(register, location)| {
                let read = value(Observable::Register(spin.thread, *register));
                read.is_some() && read == value(Observable::Location(*location, 0))
            })
        });
        if !spinning.is_empty() && reads_newest {
            let hang = spinning.iter().map(|spin| (usize::from(spin.thread.0), spin.line)).collect();
            return Ok(SpinAnswer::Hang(hang));
        }
    }
    Ok(if prediction.complete { SpinAnswer::Ends } else { SpinAnswer::Unknown })
}

/// A test with its spin loops cut to one iteration.
struct SingleSpinTest {
    test: Test,
    spins: Vec<SpinLoop>,
}

/// A loop that was cut.
struct SpinLoop {
    thread: ThreadId,
    /// 1 if the thread stays in the loop for ever.
    spin_register: RegisterId,
    /// Registers and locations of its loads.
    reads: Vec<(RegisterId, LocationId)>,
    /// The line of the jump back.
    line: u32,
}

impl SingleSpinTest {
    /// `None` if a loop writes, waits, carries values between iterations, or has inner branches.
    fn from_test(test: &Test, code: &ProgressCode) -> Option<SingleSpinTest> {
        let mut cut = SingleSpinTest { test: test.clone(), spins: Vec::new() };
        // The outcomes must show every register and location, so conditions and filters do not
        // restrict them.
        cut.test.question = None;
        cut.test.filter = None;
        cut.test.listed_terms.clear();
        for thread in 0..test.threads.len() {
            cut.cut_thread(thread, code)?;
        }
        for spin in &cut.spins {
            for (_, location) in &spin.reads {
                let term = Term::Location(*location, 0);
                if !cut.test.listed_terms.contains(&term) {
                    cut.test.listed_terms.push(term);
                }
            }
        }
        Some(cut)
    }

    fn cut_thread(&mut self, index: usize, code: &ProgressCode) -> Option<()> {
        let thread = ThreadId(index as u16);
        let operations = &code.threads[index].operations;
        let instructions = self.test.threads[index].instructions.clone();
        // The cut moves instructions, whose numbers such a pair names.
        let has_instruction_sync = self.test.system_sync.iter().any(|sync| {
            [sync.from, sync.to].iter().any(|side| side.thread == thread && side.instruction.is_some())
        });
        let jumps: Vec<(usize, usize)> = operations
            .iter()
            .enumerate()
            .filter_map(|(at, operation)| match operation {
                ProgressOperation::Jump { target, .. } if *target <= at => Some((at, *target)),
                _ => None,
            })
            .collect();
        let awaits = instructions.iter().filter_map(|instruction| instruction.kind.access());
        let has_await = awaits.into_iter().any(|access| matches!(access.kind, AccessKind::Await { .. }));
        if has_await
            || has_instruction_sync && !jumps.is_empty()
            || self.test.threads[index].place == ThreadPlace::Host
        {
            return jumps.is_empty().then_some(()).filter(|()| !has_await);
        }
        // The loop must repeat exactly as long as it reads the same values, otherwise one iteration
        // does not represent all.
        for (at, target) in &jumps {
            code.threads[index].is_idempotent_loop(*target, *at).then_some(())?;
        }
        if jumps.is_empty() {
            return Some(());
        }
        let end = self.fresh_label(thread, "END");
        let mut cut = Vec::with_capacity(instructions.len() + 4 * jumps.len());
        let mut spins: Vec<(LabelId, SpinLoop)> = Vec::new();
        for (at, _) in &jumps {
            let label = self.fresh_label(thread, "SPIN");
            let mark = self.fresh_register(thread, "spin");
            let line = instructions.get(*at)?.span.line;
            spins.push((label, SpinLoop { thread, spin_register: mark, reads: Vec::new(), line }));
        }
        for (at, instruction) in instructions.iter().enumerate() {
            let mut changed = instruction.clone();
            if let Some(loop_index) = jumps.iter().position(|(jump, _)| *jump == at) {
                match &mut changed.kind {
                    // The jump back becomes a jump to a mark: control that reaches it would repeat
                    // the loop.
                    InstructionKind::Flow(
                        Flow::Goto(target) | Flow::Branch { target, .. } | Flow::BranchIf { target, .. },
                    ) => *target = spins.get(loop_index)?.0,
                    _ => return None,
                }
            }
            cut.push(changed);
            if let Some(MemoryAccess { place, kind: AccessKind::Load(destinations), .. }) =
                instruction.kind.access()
            {
                for (loop_index, (jump, target)) in jumps.iter().enumerate() {
                    if (target..=jump).contains(&&at) {
                        // A copy, since later instructions may overwrite the destination.
                        let copy = self.fresh_register(thread, "seen");
                        cut.push(assign_register(copy, Operand::Register(destinations.first()), instruction));
                        spins.get_mut(loop_index)?.1.reads.push((copy, place.location));
                    }
                }
            }
        }
        let last = instructions.last()?.clone();
        let new_instruction = |kind| Instruction { kind, span: last.span };
        for (label, spin) in spins {
            // Normal control passes over the marks.
            cut.push(new_instruction(InstructionKind::Flow(Flow::Goto(end))));
            cut.push(new_instruction(InstructionKind::Flow(Flow::Label(label))));
            cut.push(assign_register(spin.spin_register, Operand::Constant(1), &last));
            self.spins.push(spin);
        }
        cut.push(new_instruction(InstructionKind::Flow(Flow::Label(end))));
        self.test.threads[index].instructions = cut;
        Some(())
    }

    /// A label that no text can have.
    fn fresh_label(&mut self, thread: ThreadId, name: &str) -> LabelId {
        let labels = &mut self.test.threads[usize::from(thread.0)].labels;
        labels.push(Label { name: format!("{name} {}", labels.len()) });
        LabelId(labels.len() as u16 - 1)
    }

    /// A register that no text can have.
    fn fresh_register(&mut self, thread: ThreadId, name: &str) -> RegisterId {
        let registers = &mut self.test.threads[usize::from(thread.0)].registers;
        let name = format!("{name} {}", registers.len());
        registers.push(Register { name, init: RegisterInit::Constant(0), declared: false });
        RegisterId(registers.len() as u16 - 1)
    }
}

fn assign_register(destination: RegisterId, value: Operand, neighbour: &Instruction) -> Instruction {
    let (operation, right) = (ArithmeticOperation::Add, Operand::Constant(0));
    let kind = InstructionKind::Compute(Compute::Arithmetic { destination, operation, left: value, right });
    Instruction { kind, span: neighbour.span }
}
