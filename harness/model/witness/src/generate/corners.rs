//! Small programs for one corner case of the model each, which mixtures rarely reach.
//!
//! A program is correct except for one or two choices, and the corner case decides its answer.
//! [`Corner::remove_feature`] returns the program with the opposite answer.

mod threads;

use litmus::{
    AccessKind, AccessMask, Compute, Flow, Instruction, InstructionKind, Operand, Order, RmwOperation,
    Semantics, StorageClassSet, SystemOperation, Test, closed_enum,
};

use super::columns::ProgramColumns;
use super::{ProgramFamily, RandomProgram, SplitMix64};

closed_enum! {
    /// A corner case of the model with a generator of programs.
    pub enum Corner {
        /// Chains of availability and visibility over two to four agents, read-modify-writes among their links.
        Links,
        /// Barriers next to atomics of a class that their semantics include or omit.
        Beside,
        /// Failing compare-exchanges with separate failure semantics.
        Failure,
        /// Loops that count.
        Turns,
        /// Synchronization through many agents, in any order of the columns.
        Relay,
        /// Cycles of values.
        Circle,
        /// Accesses of several sizes to one storage.
        Sizes,
        /// A filter that excludes executions in which nothing was received.
        Filter,
        /// Threads of the host that submit, wait, flush and invalidate.
        Host,
    }
}

impl Corner {
    pub fn generate_program(self, seed: u64) -> RandomProgram {
        let mut random = SplitMix64(seed ^ 0x00C0_44E4 ^ ((self as u64) << 40));
        let mut sheet = ProgramColumns::default();
        let mut bound = 1;
        match self {
            Corner::Links => sheet.emit_links(&mut random),
            Corner::Beside => sheet.emit_adjacent_barriers(&mut random),
            Corner::Failure => sheet.emit_failing_exchange(&mut random),
            Corner::Turns => bound = sheet.emit_counting_loop(&mut random),
            Corner::Relay => sheet.emit_relay(&mut random),
            Corner::Circle => sheet.emit_value_cycle(&mut random),
            Corner::Sizes => sheet.emit_size_mix(&mut random),
            Corner::Host => sheet.emit_host(&mut random),
            Corner::Filter => {
                match random.below(3) {
                    0 => sheet.emit_links(&mut random),
                    1 => sheet.emit_failing_exchange(&mut random),
                    _ => sheet.emit_adjacent_barriers(&mut random),
                }
                sheet.add_filter(&mut random);
            }
        }
        RandomProgram {
            family: ProgramFamily::Corner(self),
            text: sheet.render(&format!("corner-{seed}")),
            bound,
        }
    }

    /// Returns the test without the corner case.
    pub fn remove_feature(self, test: &Test) -> Test {
        let mut test = test.clone();
        if self == Corner::Filter {
            test.filter = None;
        }
        let last = test.threads.len().saturating_sub(1);
        for (index, thread) in test.threads.iter_mut().enumerate() {
            let counters: Vec<_> = thread.instructions.iter().filter_map(counter_register).collect();
            let relays = thread.instructions.iter().any(|i| i.kind.semantics().any(|s| s.order.acquires()))
                && thread.instructions.iter().any(|i| i.kind.semantics().any(|s| s.order.releases()));
            if self == Corner::Host {
                thread.instructions.retain(|instruction| !is_of_mapped_memory(&instruction.kind));
            }
            for Instruction { kind, .. } in &mut thread.instructions {
                match self {
                    Corner::Links if index > 0 && index < last => {
                        change_semantics(kind, |semantics| {
                            semantics.make_available = false;
                            semantics.make_visible = false;
                        });
                    }
                    Corner::Links => {}
                    Corner::Beside => change_semantics(kind, |semantics| {
                        if semantics.order != Order::Relaxed {
                            // All four storage classes, so that the synchronization covers every class.
                            semantics.classes = StorageClassSet(0b1111);
                        }
                    }),
                    Corner::Failure => copy_success_semantics(kind),
                    Corner::Turns => {
                        if let InstructionKind::Flow(Flow::Branch {
                            left: Operand::Register(left),
                            right: Operand::Constant(limit),
                            ..
                        }) = kind
                            && counters.contains(left)
                        {
                            *limit = 1;
                        }
                    }
                    Corner::Relay if relays => {
                        change_semantics(kind, |semantics| *semantics = Semantics::RELAXED);
                    }
                    Corner::Relay | Corner::Filter => {}
                    Corner::Host => match kind {
                        InstructionKind::System(SystemOperation::Available(mask)) => {
                            *mask = mask.without(AccessMask::HOST_WRITE);
                        }
                        InstructionKind::System(SystemOperation::Visible(mask)) => {
                            *mask = mask.without(AccessMask::HOST_READ).without(AccessMask::HOST_WRITE);
                        }
                        _ => {}
                    },
                    Corner::Sizes => {
                        if let InstructionKind::Access(access) = kind {
                            (access.place.offset, access.place.scalar) = (0, None);
                        }
                    }
                    Corner::Circle => {
                        if let InstructionKind::Access(access) = kind
                            && let AccessKind::Store(values) = &mut access.kind
                        {
                            *values = values.map(|_| Operand::Constant(1));
                        }
                    }
                }
            }
        }
        test
    }
}

/// The register that an instruction counts in.
fn counter_register(instruction: &Instruction) -> Option<litmus::RegisterId> {
    match &instruction.kind {
        InstructionKind::Compute(Compute::Arithmetic { destination, .. }) => Some(*destination),
        _ => None,
    }
}

fn is_of_mapped_memory(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::System(SystemOperation::Flush(_) | SystemOperation::Invalidate(_)))
}

fn change_semantics(kind: &mut InstructionKind, change: impl Fn(&mut Semantics)) {
    match kind {
        InstructionKind::Access(access) => {
            if let litmus::Access::Atomic { semantics, .. } = &mut access.strength {
                change(semantics);
            }
        }
        InstructionKind::Fence { semantics, .. } => change(semantics),
        InstructionKind::ControlBarrier(barrier) => {
            if let Some(semantics) = &mut barrier.semantics {
                change(semantics);
            }
        }
        _ => {}
    }
}

/// Gives the failure case of a compare-exchange the acquire semantics of the success case.
fn copy_success_semantics(kind: &mut InstructionKind) {
    if let InstructionKind::Access(access) = kind
        && let litmus::Access::Atomic { semantics, .. } = access.strength
        && let AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal, .. }, .. } =
            &mut access.kind
    {
        let acquires = semantics.order.acquires();
        *unequal = if acquires {
            Semantics { order: Order::Acquire, make_available: false, ..semantics }
        } else {
            Semantics::RELAXED
        };
    }
}
