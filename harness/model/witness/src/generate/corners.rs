//! Small programs for one corner case of the model each, which mixtures rarely reach.
//!
//! A program is correct except for one or two choices, and the corner case decides its answer.
//! [`Corner::remove_feature`] returns the program with the opposite answer.

use litmus::{
    AccessKind, AccessMask, Compute, Flow, Instruction, InstructionKind, Operand, Order, RmwOperation,
    Semantics, StorageClassSet, SystemOperation, Test, closed_enum,
};

use super::grammar::Grammar;
use super::{ProgramFamily, RandomProgram, SplitMix64};

closed_enum! {
    /// A corner case of the model, by the rule of `corners.grammar` that derives its programs.
    pub enum Corner {
        /// Chains of availability and visibility over two to four agents, read-modify-writes among their links.
        Links = "links",
        /// Barriers next to atomics of a class that their semantics include or omit.
        Beside = "beside",
        /// Failing compare-exchanges with separate failure semantics.
        Failure = "failure",
        /// Loops that count.
        Turns = "turns",
        /// Synchronization through many agents, in any order of the columns.
        Relay = "relays",
        /// Cycles of values.
        Circle = "circles",
        /// Accesses of several sizes to one storage.
        Sizes = "sizes",
        /// A filter that excludes executions in which nothing was received.
        Filter = "filters",
        /// Threads of the host that submit, wait, flush and invalidate.
        Host = "hosts",
    }
}

impl Corner {
    pub fn generate_program(self, seed: u64) -> RandomProgram {
        let mut random = SplitMix64(seed ^ 0x00C0_44E4 ^ ((self as u64) << 40));
        let grammar = Grammar::new(include_str!("corners.grammar"));
        let (rule, bound) = match self {
            Corner::Turns => random.pick(&[("turns-1", 1), ("turns-2", 2), ("turns-2", 2), ("turns-3", 3)]),
            _ => (self.name(), 1),
        };
        let text = grammar.derive_with(rule, |count| random.below(count));
        RandomProgram { family: ProgramFamily::Corner(self), text, bound }
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
