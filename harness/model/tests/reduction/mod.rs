//! Test reduction: removes everything that is irrelevant for a property.

use litmus::{
    Access, AccessKind, Flow, InstructionKind, MemoryAccess, Order, Semantics, StorageClassSet, Test,
};

/// Returns a minimal test with the property that is reachable from `test` by removals.
pub fn reduce_test(test: &Test, has_property: &dyn Fn(&Test) -> bool) -> Test {
    let mut best = test.clone();
    loop {
        let Some(smaller) = smaller_tests(&best).into_iter().find(|candidate| has_property(candidate)) else {
            return best;
        };
        best = smaller;
    }
}

/// Returns every test with one removal.
fn smaller_tests(test: &Test) -> Vec<Test> {
    let mut found = Vec::new();
    for index in 0..test.system_sync.len() {
        let mut less = test.clone();
        less.system_sync.remove(index);
        found.push(less);
    }
    for thread in 0..test.threads.len() {
        for index in 0..test.threads[thread].instructions.len() {
            found.extend(without_instruction(test, thread, index));
        }
    }
    for thread in 0..test.threads.len() {
        for index in 0..test.threads[thread].instructions.len() {
            for kind in weaker_forms(&test.threads[thread].instructions[index].kind) {
                let mut less = test.clone();
                less.threads[thread].instructions[index].kind = kind;
                found.push(less);
            }
        }
    }
    found
}

/// Returns the test without an instruction; `None` for the label of a jump.
fn without_instruction(test: &Test, thread: usize, index: usize) -> Option<Test> {
    let mut less = test.clone();
    let instructions = &mut less.threads[thread].instructions;
    let removed = instructions.remove(index);
    if let InstructionKind::Flow(Flow::Label(label)) = removed.kind {
        let jumps = |kind: &InstructionKind| match kind {
            InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) => *target == label,
            _ => false,
        };
        if instructions.iter().any(|instruction| jumps(&instruction.kind)) {
            return None;
        }
    }
    let length = instructions.len();
    for side in less.system_sync.iter_mut().flat_map(|sync| [&mut sync.from, &mut sync.to]) {
        if let Some(instruction) = &mut side.instruction
            && usize::from(side.thread.0) == thread
        {
            if usize::from(*instruction) > index {
                *instruction -= 1;
            }
            if usize::from(*instruction) >= length {
                return None;
            }
        }
    }
    let emptied = |sync: &litmus::SystemSync| less.orders_events(sync);
    less.system_sync.iter().all(emptied).then_some(less)
}

/// Returns the instruction with weaker semantics.
fn weaker_forms(kind: &InstructionKind) -> Vec<InstructionKind> {
    let mut found = Vec::new();
    let mut change = |edit: &dyn Fn(&mut Semantics)| {
        let mut less = kind.clone();
        let semantics = match &mut less {
            InstructionKind::Access(MemoryAccess { strength: Access::Atomic { semantics, .. }, .. })
            | InstructionKind::Fence { semantics, .. } => semantics,
            InstructionKind::ControlBarrier(barrier) => match &mut barrier.semantics {
                Some(semantics) => semantics,
                None => return,
            },
            _ => return,
        };
        if semantics.order == Order::Relaxed {
            return;
        }
        edit(semantics);
        if semantics.classes != StorageClassSet::EMPTY && less != *kind {
            found.push(less);
        }
    };
    change(&|semantics| semantics.make_available = false);
    change(&|semantics| semantics.make_visible = false);
    for class in 0..4 {
        change(&|semantics| semantics.classes.0 &= !(1 << class));
    }
    if matches!(
        kind,
        InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::Access(MemoryAccess { kind: AccessKind::Rmw { .. }, .. })
    ) {
        change(&|semantics| {
            if semantics.order == Order::AcquireRelease && !semantics.make_available {
                semantics.order = Order::Acquire;
            }
        });
        change(&|semantics| {
            if semantics.order == Order::AcquireRelease && !semantics.make_visible {
                semantics.order = Order::Release;
            }
        });
    }
    if let InstructionKind::Access(access) = kind
        && let (AccessKind::Load(_) | AccessKind::Store(_), Access::Atomic { scope, semantics }) =
            (access.kind, access.strength)
        && semantics.order != Order::Relaxed
    {
        let strength = Access::Atomic { scope, semantics: Semantics::RELAXED };
        let less = InstructionKind::Access(MemoryAccess { strength, ..*access });
        found.push(less);
    }
    found
}
