//! Random litmus tests, small enough for the naive enumerator.

use litmus::{
    Access, AccessMask, ArithmeticOperation, BranchRelation, Condition, ControlBarrier, Dialect, Instruction,
    InstructionKind, Interlock, InterlockEnd, Khronos, Label, LabelId, Location, LocationId, LocationInit,
    Metadata, Operand, Order, Place, Placement, Query, QueryKind, QueryTerm, Question, QuestionKind,
    Register, RegisterId, RegisterInit, RmwOperation, ScalarType, Scope, Semantics, SizeComparison, Span,
    StorageClass, StorageClassSet, SyncPoint, SystemOperation, SystemSync, Term, Test, Thread, ThreadId,
};
use proptest::prelude::*;

/// Scopes, narrow ones often enough to matter.
fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        1 => Just(Scope::Invocation),
        2 => Just(Scope::Subgroup),
        3 => Just(Scope::Workgroup),
        1 => Just(Scope::QueueFamily),
        4 => Just(Scope::Device),
    ]
}

fn semantics(orders: &'static [Order]) -> impl Strategy<Value = Semantics> {
    (proptest::sample::select(orders), 1u8..4, any::<bool>(), any::<bool>()).prop_map(
        |(order, classes, available, visible)| {
            if order == Order::Relaxed {
                Semantics::RELAXED
            } else {
                Semantics {
                    order,
                    classes: StorageClassSet(classes),
                    make_available: available && order.releases(),
                    make_visible: visible && order.acquires(),
                }
            }
        },
    )
}

fn access(orders: &'static [Order]) -> impl Strategy<Value = Access> {
    prop_oneof![
        1 => Just(Access::Private),
        2 => Just(Access::NonPrivate),
        2 => scope().prop_map(|scope| Access::Coherent { scope }),
        5 => (scope(), semantics(orders)).prop_map(|(scope, semantics)| Access::Atomic { scope, semantics }),
    ]
}

/// The names: x and its alias y in class 0, z in class 1.
fn location() -> impl Strategy<Value = u16> {
    prop_oneof![4 => Just(0u16), 1 => Just(1u16), 3 => Just(2u16)]
}

fn class_of(location: u16) -> StorageClass {
    if location == 2 { StorageClass::Workgroup } else { StorageClass::Buffer }
}

fn operand(registers: u16) -> impl Strategy<Value = Operand> {
    prop_oneof![
        3 => (1i64..3).prop_map(Operand::Constant),
        1 => (0..registers).prop_map(|r| Operand::Register(RegisterId(r))),
    ]
}

const REGISTERS: u16 = 2;

fn instruction() -> impl Strategy<Value = InstructionKind> {
    use Order::{Acquire, AcquireRelease, Relaxed, Release};
    prop_oneof![
        4 => (0..REGISTERS, location(), access(&[Relaxed, Acquire])).prop_map(|(r, l, access)| {
            InstructionKind::Load {
                destination: RegisterId(r),
                location: LocationId(l),
                offset: 0,
                scalar: None,
                class: class_of(l),
                access,
            }
        }),
        4 => (location(), operand(REGISTERS), access(&[Relaxed, Release])).prop_map(|(l, value, access)| {
            InstructionKind::Store {
                location: LocationId(l),
                offset: 0,
                scalar: None,
                value,
                class: class_of(l),
                access,
            }
        }),
        2 => (
            0..REGISTERS,
            location(),
            operand(REGISTERS),
            0..3u8,
            scope(),
            semantics(&[Relaxed, Acquire, Release, AcquireRelease]),
        )
            .prop_map(|(r, l, value, operation, scope, semantics)| InstructionKind::Rmw {
                destination: RegisterId(r),
                location: LocationId(l),
                offset: 0,
                scalar: None,
                operation: match operation {
                    0 => RmwOperation::Exchange(value),
                    1 => RmwOperation::Fetch(ArithmeticOperation::Add, value),
                    _ => RmwOperation::CompareExchange {
                        compare: Operand::Constant(0),
                        value,
                        unequal: Semantics::RELAXED,
                    },
                },
                class: class_of(l),
                scope,
                semantics,
            }),
        2 => (scope(), semantics(&[Acquire, Release, AcquireRelease]))
            .prop_map(|(scope, semantics)| InstructionKind::Fence { scope, semantics }),
        1 => (scope(), proptest::option::of(semantics(&[Acquire, Release, AcquireRelease])), 0..2u8).prop_map(
            |(memory_scope, semantics, id)| InstructionKind::ControlBarrier(ControlBarrier {
                execution_scope: Scope::Workgroup,
                memory_scope,
                semantics,
                id: id.to_string(),
                resource: None,
                quorum: None,
            })
        ),
        1 => Just(InstructionKind::AvailableToDevice),
        1 => Just(InstructionKind::VisibleFromDevice),
    ]
}

/// A thread; sometimes its last instruction is skipped when the first register is 0.
fn thread() -> impl Strategy<Value = (Vec<InstructionKind>, Placement, bool)> {
    (proptest::collection::vec(instruction(), 1..4), 0..2u32, 0..2u32, proptest::bool::weighted(0.2))
        .prop_map(|(instructions, workgroup, subgroup, guarded)| {
            (instructions, Placement { queue_family: 0, workgroup, subgroup }, guarded)
        })
}

/// A random test with two or three threads, three names of two locations, and now and then a condition on a location.
pub fn test() -> impl Strategy<Value = Test> {
    (
        proptest::collection::vec(thread(), 2..4),
        proptest::option::weighted(0.25, (0..2u16, 0..2u16)),
        proptest::option::weighted(0.3, location()),
    )
        .prop_map(|(threads, sync, observed)| build(threads, sync, observed))
}

fn build(
    threads: Vec<(Vec<InstructionKind>, Placement, bool)>,
    sync: Option<(u16, u16)>,
    observed: Option<u16>,
) -> Test {
    let location = |name: &str, init| Location {
        name: name.to_owned(),
        reference: None,
        scalar: None,
        init,
        host: false,
        noncoherent: false,
        declared: true,
        span: Span::default(),
    };
    let instruction = |kind| Instruction { kind, span: Span::default() };
    let threads = threads
        .into_iter()
        .enumerate()
        .map(|(number, (kinds, placement, guarded))| {
            let mut instructions: Vec<Instruction> = kinds.into_iter().map(instruction).collect();
            let mut labels = Vec::new();
            let last = instructions.len() - 1;
            let movable = !matches!(instructions[last].kind, InstructionKind::ControlBarrier(_));
            if guarded && last > 0 && movable {
                labels.push(Label { name: "LC00".to_owned() });
                instructions.insert(
                    last,
                    instruction(InstructionKind::Branch {
                        relation: BranchRelation::Equal,
                        left: Operand::Register(RegisterId(0)),
                        right: Operand::Constant(0),
                        target: LabelId(0),
                    }),
                );
                instructions.push(instruction(InstructionKind::Label(LabelId(0))));
            }
            Thread {
                number: number as u32,
                place: Place::Device(placement),
                registers: (0..REGISTERS)
                    .map(|r| Register {
                        name: format!("r{r}"),
                        init: RegisterInit::Constant(0),
                        declared: true,
                    })
                    .collect(),
                labels,
                instructions,
                span: Span::default(),
            }
        })
        .collect();
    let point = |thread| SyncPoint { thread: ThreadId(thread), instruction: None };
    Test {
        name: "random".to_owned(),
        dialect: Dialect::Vulkan,
        metadata: Metadata::default(),
        locations: vec![
            location("x", LocationInit::Constant(0)),
            location("y", LocationInit::AliasOf(LocationId(0))),
            location("z", LocationInit::Constant(0)),
        ],
        threads,
        system_sync: sync
            .filter(|(from, to)| from != to)
            .map(|(from, to)| SystemSync { from: point(from), to: point(to), span: Span::default() })
            .into_iter()
            .collect(),
        listed: observed.map(|l| Term::Location(LocationId(l))).into_iter().collect(),
        filter: None,
        khronos: None,
        question: Some(Question {
            kind: QuestionKind::Exists,
            condition: Condition::True,
            span: Span::default(),
        }),
    }
}

/// A random test whose accesses to a location of two bytes are of one byte or of both.
pub fn sizes() -> impl Strategy<Value = Test> {
    (test(), proptest::collection::vec(0..4u8, 12)).prop_map(|(mut test, choices)| {
        let mut choices = choices.into_iter().cycle();
        for location in &mut test.locations {
            location.scalar = Some(ScalarType::U16);
        }
        for instruction in test.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
            match &mut instruction.kind {
                InstructionKind::Load { location, offset, scalar, .. }
                | InstructionKind::Store { location, offset, scalar, .. }
                | InstructionKind::Rmw { location, offset, scalar, .. }
                    if location.0 < 2 =>
                {
                    let choice = choices.next().unwrap_or_default();
                    if choice < 2 {
                        (*offset, *scalar) = (u32::from(choice), Some(ScalarType::U8));
                    }
                }
                _ => {}
            }
            // Both bytes of what is stored matter.
            if let InstructionKind::Store { value: Operand::Constant(value), .. } = &mut instruction.kind {
                *value *= 0x101;
            }
        }
        test
    })
}

/// A random test whose last thread is one of the host, and whose memory dependencies name accesses.
pub fn hosts() -> impl Strategy<Value = Test> {
    (test(), proptest::collection::vec(0..12u8, 24), any::<bool>()).prop_map(
        |(mut test, choices, noncoherent)| {
            let mut choices = choices.into_iter().cycle();
            let mut next = move || choices.next().unwrap_or_default();
            test.locations[0].noncoherent = noncoherent;
            let host = test.threads.len() - 1;
            test.threads[host].place = Place::Host;
            let mask = |choice: u8| match choice {
                0 => AccessMask::NONE,
                1 => AccessMask::HOST_WRITE,
                2 => AccessMask::SHADER_WRITE,
                3 => AccessMask::SHADER_READ.with(AccessMask::HOST_READ),
                4 => AccessMask::MEMORY_READ,
                _ => AccessMask::SHADER_READ.with(AccessMask::SHADER_WRITE).with(AccessMask::HOST_WRITE),
            };
            for thread in &mut test.threads[..host] {
                for instruction in &mut thread.instructions {
                    let kind = &mut instruction.kind;
                    match kind {
                        InstructionKind::AvailableToDevice => {
                            *kind = InstructionKind::System(SystemOperation::Available(mask(next())));
                        }
                        InstructionKind::VisibleFromDevice => {
                            *kind = InstructionKind::System(SystemOperation::Visible(mask(next())));
                        }
                        _ => {}
                    }
                }
            }
            let mut submitted = false;
            let place = |access: &mut Access| {
                *access = match *access {
                    Access::Atomic { semantics, .. } => {
                        Access::Atomic { scope: Scope::CrossDevice, semantics }
                    }
                    _ => Access::Private,
                };
            };
            // Nothing of the host's own operations stands behind a branch.
            test.threads[host].labels.clear();
            test.threads[host]
                .instructions
                .retain(|i| !matches!(i.kind, InstructionKind::Branch { .. } | InstructionKind::Label(_)));
            for instruction in &mut test.threads[host].instructions {
                let kind = &mut instruction.kind;
                match kind {
                    InstructionKind::Load { access, .. } | InstructionKind::Store { access, .. } => {
                        place(access)
                    }
                    InstructionKind::Rmw { scope, .. } | InstructionKind::Fence { scope, .. }
                        if next() < 8 =>
                    {
                        *scope = Scope::CrossDevice;
                    }
                    _ => {
                        *kind = InstructionKind::System(match next() {
                            0..=4 if !submitted => {
                                submitted = true;
                                SystemOperation::Submit(vec![ThreadId(0)])
                            }
                            0..=7 => SystemOperation::Wait(vec![ThreadId(0)]),
                            8 | 9 => SystemOperation::Flush(vec![LocationId(u16::from(next()) % 3)]),
                            _ => SystemOperation::Invalidate(Vec::new()),
                        });
                    }
                }
            }
            test
        },
    )
}

/// A random test with shader calls and interlocked sections, and their scopes.
pub fn calls() -> impl Strategy<Value = Test> {
    (test(), proptest::collection::vec(0..12u8, 24)).prop_map(|(mut test, choices)| {
        let mut choices = choices.into_iter().cycle();
        let mut next = move || choices.next().unwrap_or_default();
        for (index, thread) in test.threads.iter_mut().enumerate() {
            thread.labels.clear();
            thread
                .instructions
                .retain(|i| !matches!(i.kind, InstructionKind::Branch { .. } | InstructionKind::Label(_)));
            let mut called = index > 0;
            for instruction in &mut thread.instructions {
                let kind = &mut instruction.kind;
                let section = |end| InstructionKind::Interlock(Interlock { end, section: "0".to_owned() });
                match kind {
                    InstructionKind::ControlBarrier(_) if !called => {
                        called = true;
                        *kind = InstructionKind::ShaderCall(vec![ThreadId(1)]);
                    }
                    InstructionKind::ControlBarrier(_) | InstructionKind::AvailableToDevice => {
                        *kind = section(InterlockEnd::Begin);
                    }
                    InstructionKind::VisibleFromDevice => *kind = section(InterlockEnd::End),
                    InstructionKind::Load {
                        access: Access::Coherent { scope } | Access::Atomic { scope, .. },
                        ..
                    }
                    | InstructionKind::Store {
                        access: Access::Coherent { scope } | Access::Atomic { scope, .. },
                        ..
                    }
                    | InstructionKind::Fence { scope, .. } => match next() {
                        0..=5 => *scope = Scope::ShaderCall,
                        6..=8 => *scope = Scope::FragmentInterlock,
                        _ => {}
                    },
                    _ => {}
                }
            }
        }
        test
    })
}

/// A random test as a `.test` file has it: no control flow, numbers for values, and queries.
pub fn khronos() -> impl Strategy<Value = Test> {
    let value = || prop_oneof![3 => Just(None), 2 => (0i64..4).prop_map(Some)];
    let size = || {
        let comparisons = [SizeComparison::Equal, SizeComparison::Greater, SizeComparison::LessOrEqual];
        (proptest::sample::select(comparisons.to_vec()), 0u32..4)
    };
    let term = prop_oneof![
        2 => Just(QueryTerm::Consistent),
        2 => size().prop_map(|(comparison, number)| QueryTerm::Races(comparison, number)),
        1 => size().prop_map(|(comparison, number)| QueryTerm::ReleaseSequences(comparison, number)),
    ];
    let kind = proptest::sample::select(vec![QueryKind::Satisfiable, QueryKind::NoSolution]);
    let query = (kind, proptest::collection::vec(term, 1..3));
    (test(), proptest::collection::vec(value(), 16), proptest::collection::vec(query, 1..4)).prop_map(
        |(mut test, values, queries)| {
            let mut given = values.into_iter().cycle();
            let mut read_values = Vec::new();
            for thread in &mut test.threads {
                thread.labels.clear();
                thread.instructions.retain(|i| {
                    !matches!(i.kind, InstructionKind::Branch { .. } | InstructionKind::Label(_))
                });
                for instruction in &mut thread.instructions {
                    match &mut instruction.kind {
                        InstructionKind::Store { value, .. } => *value = number(given.next().flatten()),
                        InstructionKind::Rmw { operation, .. } => {
                            *operation = RmwOperation::Exchange(number(given.next().flatten()));
                        }
                        _ => {}
                    }
                }
                read_values.push(thread.instructions.iter().map(|_| given.next().flatten()).collect());
            }
            test.listed.clear();
            test.question = None;
            test.dialect = Dialect::Khronos;
            let queries = queries.into_iter().map(|(kind, terms)| Query::new(kind, false, terms)).collect();
            test.khronos = Some(Khronos { queries, read_values });
            test
        },
    )
}

fn number(value: Option<i64>) -> Operand {
    Operand::Constant(value.unwrap_or(litmus::khronos::NO_VALUE))
}
