//! Which threads of a test may overlap in time.

use litmus::test::{
    Access, ControlBarrier, Dialect, Instruction, InstructionKind, LocationId, MemoryPlace, Operand,
    Placement, Scope, StorageClass, SyncPoint, SystemSync, Test, Thread, ThreadId, ThreadPlace,
};
use litmus::{Overlap, Span, SystemOperation};

fn instruction(kind: InstructionKind) -> Instruction {
    Instruction { kind, span: Span::default() }
}

fn store() -> Instruction {
    let place = MemoryPlace::whole_location(LocationId(0), StorageClass::Buffer);
    instruction(InstructionKind::store(place, Operand::Constant(1), Access::NonPrivate))
}

fn barrier(id: &str) -> Instruction {
    instruction(InstructionKind::ControlBarrier(ControlBarrier {
        execution_scope: Scope::Workgroup,
        memory_scope: Scope::Workgroup,
        semantics: None,
        id: id.into(),
        resource: None,
        quorum: None,
    }))
}

fn test(threads: Vec<(u32, Vec<Instruction>)>) -> Test {
    let threads = (0..)
        .zip(threads)
        .map(|(number, (workgroup, instructions))| Thread {
            number,
            place: ThreadPlace::Device(Placement { queue_family: 0, queue: 0, workgroup, subgroup: number }),
            registers: Vec::new(),
            labels: Vec::new(),
            instructions,
            span: Span::default(),
        })
        .collect();
    Test { threads, ..Test::new("T", Dialect::Vulkan) }
}

fn ssw(from: (u16, Option<u16>), to: (u16, Option<u16>)) -> SystemSync {
    SystemSync {
        from: SyncPoint { thread: ThreadId(from.0), instruction: from.1 },
        to: SyncPoint { thread: ThreadId(to.0), instruction: to.1 },
        span: Span::default(),
    }
}

#[test]
fn one_thread_is_ordered() {
    assert_eq!(test(vec![(0, vec![store()])]).thread_overlap(), Overlap::Ordered);
}

#[test]
fn unsynchronized_threads_may_overlap() {
    assert_eq!(test(vec![(0, vec![store()]), (1, vec![store()])]).thread_overlap(), Overlap::Possible);
}

#[test]
fn a_shared_barrier_separates_threads() {
    let with = |left, right| {
        test(vec![(0, vec![store(), barrier(left)]), (0, vec![barrier(right), store()])]).thread_overlap()
    };
    assert_eq!(with("0", "0"), Overlap::ControlBarrier);
    assert_eq!(with("0", "00"), Overlap::Possible, "instances are compared as text");
}

#[test]
fn a_barrier_under_a_branch_may_not_order() {
    let parsed = |branch: &str, label: &str| {
        let rows = [branch, "cbar.execsg.sg 0", label].map(|row| format!("{row} | {row} ;"));
        let head = "VULKAN T\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;";
        let store = "st.nonpriv.sc0 x, 1 | st.nonpriv.sc0 x, 2 ;";
        let text = format!("{head}\n{store}\n{}\nexists (x == 1)", rows.join("\n"));
        litmus::parse(&text, "T").unwrap().thread_overlap()
    };
    assert_eq!(parsed("beq r0, 1, LC00", "LC00:"), Overlap::Possible);
    assert_eq!(parsed("", "LC00:"), Overlap::ControlBarrier);
}

#[test]
fn a_barrier_orders_only_its_workgroup() {
    let thread = || vec![store(), barrier("0")];
    assert_eq!(test(vec![(0, thread()), (1, thread())]).thread_overlap(), Overlap::Possible);
    let third = test(vec![(0, thread()), (0, thread()), (1, vec![store()])]);
    assert_eq!(third.thread_overlap(), Overlap::Possible);
}

#[test]
fn a_thread_without_accesses_overlaps_no_thread() {
    let with = |others| test(vec![(0, vec![barrier("0")]), (1, others)]).thread_overlap();
    assert_eq!(with(vec![store(), barrier("0")]), Overlap::Ordered);
}

#[test]
fn a_chain_of_system_synchronization_orders_all() {
    let mut chain = test(vec![(0, vec![store()]), (1, vec![store()]), (2, vec![store()])]);
    chain.system_sync = vec![ssw((0, None), (1, None)), ssw((1, Some(0)), (2, Some(0)))];
    assert_eq!(chain.thread_overlap(), Overlap::Ordered);
    chain.system_sync.pop();
    assert_eq!(chain.thread_overlap(), Overlap::Possible);
}

#[test]
fn an_awaited_submission_does_not_overlap() {
    let submit = || instruction(InstructionKind::System(SystemOperation::Submit(vec![ThreadId(1)])));
    let wait = || instruction(InstructionKind::System(SystemOperation::Wait(vec![ThreadId(1)])));
    let overlap = |host: Vec<Instruction>| test(vec![(0, host), (1, vec![store()])]).thread_overlap();
    assert_eq!(overlap(vec![store(), submit(), wait(), store()]), Overlap::Ordered);
    assert_eq!(overlap(vec![store(), submit()]), Overlap::Ordered);
    assert_eq!(overlap(vec![submit(), store(), wait()]), Overlap::Possible);
    assert_eq!(overlap(vec![submit(), store()]), Overlap::Possible);
    let two = |host: Vec<Instruction>| {
        test(vec![(0, host), (1, vec![store()]), (2, vec![store()])]).thread_overlap()
    };
    let other = || instruction(InstructionKind::System(SystemOperation::Submit(vec![ThreadId(2)])));
    assert_eq!(two(vec![submit(), wait(), other()]), Overlap::Ordered);
    assert_eq!(two(vec![submit(), other(), wait()]), Overlap::Possible);
}

#[test]
fn an_access_outside_the_synchronized_part_may_overlap() {
    let mut partly = test(vec![(0, vec![store(), store()]), (1, vec![store()])]);
    partly.system_sync = vec![ssw((0, Some(0)), (1, None))];
    assert_eq!(partly.thread_overlap(), Overlap::Possible);
    partly.system_sync = vec![ssw((0, Some(1)), (1, None))];
    assert_eq!(partly.thread_overlap(), Overlap::Ordered);
}
