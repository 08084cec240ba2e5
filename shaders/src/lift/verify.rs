//! Compares the events of a kernel with its test.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{
    ArithmeticOperation, ControlBarrier, InstructionKind, LocationId, RmwOperation, ScalarType, Scope,
    Semantics, Test, Thread, ThreadId,
};
use rspirv::spirv::Op;

use super::{Event, LiftError, Written, lift};
use crate::kernel::Kernel;

/// Whether the kernel holds the events of the test, thread by thread, in order, with nothing lost and nothing added.
///
/// A control barrier whose semantics differ between threads may stand as a control barrier without semantics between
/// memory barriers of the thread's own semantics (clause VK-SW-10). A thread may pass control barriers that are not its
/// own after its last event, and semantics-free ones of subgroup execution scope right before a workgroup meets.
///
/// # Errors
/// [`LiftError::Differs`] with the first difference; other errors where the kernel cannot be read.
pub fn verify(test: &Test, kernel: &Kernel) -> Result<(), LiftError> {
    let bindings = bindings_of_locations(test);
    let lifted = lift(&kernel.words, &kernel.bindings)?;
    for (index, thread) in test.threads.iter().enumerate() {
        let id = ThreadId(index as u16);
        let found = lifted.get(&id).map(Vec::as_slice).unwrap_or_default();
        let reports = kernel.results.iter().filter(|slot| slot.thread() == Some(id)).count();
        Comparison { thread: id, found, position: 0 }.run(test, thread, &bindings, reports)?;
    }
    Ok(())
}

/// Bindings are handed out to the references that are accessed, in the order of the test.
fn bindings_of_locations(test: &Test) -> BTreeMap<LocationId, u32> {
    let accessed: BTreeSet<LocationId> = test
        .threads
        .iter()
        .flat_map(|thread| &thread.instructions)
        .filter_map(|instruction| match &instruction.kind {
            InstructionKind::Load { location, .. }
            | InstructionKind::Store { location, .. }
            | InstructionKind::Rmw { location, .. } => Some(*location),
            _ => None,
        })
        .collect();
    accessed.into_iter().zip(0..).collect()
}

/// Which instructions can be reached at all.
fn reachable(thread: &Thread) -> Vec<bool> {
    let mut reached = vec![false; thread.instructions.len()];
    let position_of = |label| {
        thread
            .instructions
            .iter()
            .position(|i| matches!(i.kind, InstructionKind::Label(here) if here == label))
    };
    let mut open = vec![0];
    while let Some(position) = open.pop() {
        match reached.get_mut(position) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        match thread.instructions.get(position).map(|instruction| &instruction.kind) {
            Some(InstructionKind::Goto(target)) => open.extend(position_of(*target)),
            Some(InstructionKind::Branch { target, .. }) => {
                open.extend(position_of(*target));
                open.push(position + 1);
            }
            _ => open.push(position + 1),
        }
    }
    reached
}

struct Comparison<'a> {
    thread: ThreadId,
    found: &'a [Event],
    position: usize,
}

impl Comparison<'_> {
    fn run(
        &mut self,
        test: &Test,
        thread: &Thread,
        bindings: &BTreeMap<LocationId, u32>,
        reports: usize,
    ) -> Result<(), LiftError> {
        for (instruction, reached) in thread.instructions.iter().zip(reachable(thread)) {
            if !reached {
                continue;
            }
            if let InstructionKind::ControlBarrier(barrier) = &instruction.kind {
                self.control_barrier(barrier)?;
            } else if let Some(expected) = expected(test, bindings, &instruction.kind) {
                match self.found.get(self.position) {
                    Some(found) if agrees(&expected, found) => self.position += 1,
                    _ => return Err(self.differs(format!("{expected:?}"))),
                }
            }
        }
        for _ in 0..reports {
            match self.found.get(self.position) {
                Some(Event::Report) => self.position += 1,
                _ => return Err(self.differs("a result".to_owned())),
            }
        }
        while let Some(Event::ControlBarrier { .. }) = self.found.get(self.position) {
            self.position += 1;
        }
        if self.position < self.found.len() {
            return Err(self.differs("its end".to_owned()));
        }
        Ok(())
    }

    fn differs(&self, expected: String) -> LiftError {
        let found = self.found.get(self.position).map_or("its end".to_owned(), |event| format!("{event:?}"));
        LiftError::Differs { thread: self.thread, position: self.position, expected, found }
    }

    fn control_barrier(&mut self, barrier: &ControlBarrier) -> Result<(), LiftError> {
        let wanted = barrier.semantics.unwrap_or(Semantics::RELAXED);
        let whole = Event::ControlBarrier {
            execution: barrier.execution_scope,
            memory: barrier.memory_scope,
            semantics: wanted,
        };
        if self.found.get(self.position) == Some(&whole) {
            self.position += 1;
            return Ok(());
        }
        if barrier.execution_scope == Scope::Workgroup {
            self.skip_foreign_subgroup_barriers();
            if self.found.get(self.position) == Some(&whole) {
                self.position += 1;
                return Ok(());
            }
        }
        let fence = |semantics| Event::Fence { scope: barrier.memory_scope, semantics };
        if wanted.order.releases() {
            let release = Semantics { order: litmus::Order::Release, make_visible: false, ..wanted };
            self.expect(&fence(release))?;
        }
        if barrier.execution_scope == Scope::Workgroup {
            self.skip_foreign_subgroup_barriers();
        }
        match self.found.get(self.position) {
            Some(Event::ControlBarrier { execution, semantics: Semantics::RELAXED, .. })
                if *execution == barrier.execution_scope =>
            {
                self.position += 1;
            }
            _ => return Err(self.differs(format!("{whole:?}"))),
        }
        if wanted.order.acquires() {
            let acquire = Semantics { order: litmus::Order::Acquire, make_available: false, ..wanted };
            self.expect(&fence(acquire))?;
        }
        Ok(())
    }

    fn expect(&mut self, expected: &Event) -> Result<(), LiftError> {
        if self.found.get(self.position) != Some(expected) {
            return Err(self.differs(format!("{expected:?}")));
        }
        self.position += 1;
        Ok(())
    }

    fn skip_foreign_subgroup_barriers(&mut self) {
        while let Some(Event::ControlBarrier {
            execution: Scope::Subgroup,
            semantics: Semantics::RELAXED,
            ..
        }) = self.found.get(self.position)
        {
            self.position += 1;
        }
    }
}

/// The event of an instruction of the test; what is computed may turn out to be a constant.
fn expected(test: &Test, bindings: &BTreeMap<LocationId, u32>, kind: &InstructionKind) -> Option<Event> {
    let written = |operand: &litmus::Operand| match operand {
        litmus::Operand::Constant(constant) => Written::Constant(*constant as u32),
        litmus::Operand::Register(_) => Written::Computed,
    };
    Some(match kind {
        InstructionKind::Load { location, access, .. } => {
            Event::Load { binding: *bindings.get(location)?, access: *access }
        }
        InstructionKind::Store { location, access, value, .. } => {
            Event::Store { binding: *bindings.get(location)?, access: *access, value: written(value) }
        }
        InstructionKind::Rmw { location, scalar, operation, scope, semantics, .. } => {
            let signed = scalar.unwrap_or(test.location(*location).scalar_type()) == ScalarType::I32;
            let (instruction, unequal, values) = match operation {
                RmwOperation::Exchange(value) => (Op::AtomicExchange, None, vec![written(value)]),
                RmwOperation::Fetch(arithmetic, value) => {
                    (fetch(*arithmetic, signed)?, None, vec![written(value)])
                }
                RmwOperation::CompareExchange { compare, value, unequal } => {
                    (Op::AtomicCompareExchange, Some(*unequal), vec![written(value), written(compare)])
                }
            };
            Event::Rmw {
                binding: *bindings.get(location)?,
                instruction,
                scope: *scope,
                semantics: *semantics,
                unequal,
                values,
            }
        }
        InstructionKind::Fence { scope, semantics } => Event::Fence { scope: *scope, semantics: *semantics },
        _ => return None,
    })
}

fn fetch(arithmetic: ArithmeticOperation, signed: bool) -> Option<Op> {
    Some(match arithmetic {
        ArithmeticOperation::Add => Op::AtomicIAdd,
        ArithmeticOperation::Subtract => Op::AtomicISub,
        ArithmeticOperation::And => Op::AtomicAnd,
        ArithmeticOperation::Or => Op::AtomicOr,
        ArithmeticOperation::Xor => Op::AtomicXor,
        ArithmeticOperation::Minimum if signed => Op::AtomicSMin,
        ArithmeticOperation::Minimum => Op::AtomicUMin,
        ArithmeticOperation::Maximum if signed => Op::AtomicSMax,
        ArithmeticOperation::Maximum => Op::AtomicUMax,
        ArithmeticOperation::Multiply | ArithmeticOperation::Divide => return None,
    })
}

/// Whether the kernel's event is the test's. A register that still holds its initial value is a constant in the kernel.
fn agrees(expected: &Event, found: &Event) -> bool {
    let same_value = |left: &Written, right: &Written| *left == Written::Computed || left == right;
    match (expected, found) {
        (
            Event::Store { binding, access, value },
            Event::Store { binding: found_binding, access: found_access, value: found_value },
        ) => binding == found_binding && access == found_access && same_value(value, found_value),
        (
            Event::Rmw { binding, instruction, scope, semantics, unequal, values },
            Event::Rmw {
                binding: found_binding,
                instruction: found_instruction,
                scope: found_scope,
                semantics: found_semantics,
                unequal: found_unequal,
                values: found_values,
            },
        ) => {
            (binding, instruction, scope, semantics, unequal)
                == (found_binding, found_instruction, found_scope, found_semantics, found_unequal)
                && values.len() == found_values.len()
                && values.iter().zip(found_values).all(|(left, right)| same_value(left, right))
        }
        _ => expected == found,
    }
}
