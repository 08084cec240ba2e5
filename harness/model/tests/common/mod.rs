//! Generators of random litmus tests, small enough for the naive enumerator.

use litmus::{
    Access, AccessKind, AccessMask, ArithmeticOperation, Comparison, Components, Compute, Condition,
    ControlBarrier, Dialect, Flow, Instruction, InstructionKind, Interlock, InterlockEnd, InterlockOrder,
    Khronos, Label, LabelId, Location, LocationId, LocationInit, MemoryAccess, MemoryPlace, Operand, Order,
    Performer, Placement, QueryKind, QueryTerm, Question, QuestionKind, Register, RegisterId, RegisterInit,
    RmwOperation, SatisfiabilityLine, ScalarType, Scope, Semantics, Span, StorageClass, StorageClassSet,
    SyncPoint, SystemOperation, SystemSync, Term, Test, Thread, ThreadId, ThreadPlace,
};
use proptest::prelude::*;
use witness::generate::grammar::Grammar;

/// Random programs by a rule of `programs.grammar`.
pub fn programs(rule: &'static str) -> impl Strategy<Value = Test> {
    texts(rule).prop_map(|text| litmus::parse(&text, "random").unwrap_or_else(|e| panic!("{text}{e:?}")))
}

/// Random texts by a rule of `programs.grammar`.
pub fn texts(rule: &'static str) -> impl Strategy<Value = String> {
    let choices = proptest::collection::vec(any::<u16>(), 60);
    choices.prop_map(move |choices| Grammar::new(include_str!("programs.grammar")).derive(rule, &choices))
}

/// Scopes, with enough narrow ones.
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
    // Mostly the two classes of most accesses, sometimes any of the four.
    let classes = prop_oneof![4 => 1u8..4, 1 => 1u8..16];
    (proptest::sample::select(orders), classes, any::<bool>(), any::<bool>()).prop_map(
        |(order, classes, available, visible)| {
            if order == Order::Relaxed {
                Semantics::RELAXED
            } else {
                Semantics {
                    order,
                    classes: StorageClassSet(classes),
                    make_available: available && order.releases(),
                    make_visible: visible && order.acquires(),
                    ..Semantics::RELAXED
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

/// The names: x and its alias y in class 0, z in class 1, sometimes w in class 2. A name has one class.
fn location() -> impl Strategy<Value = (u16, StorageClass)> {
    prop_oneof![
        8 => Just((0u16, StorageClass::Buffer)),
        2 => Just((1u16, StorageClass::Buffer)),
        6 => Just((2u16, StorageClass::Workgroup)),
        1 => Just((3u16, StorageClass::Image)),
    ]
}

fn operand(registers: u16) -> impl Strategy<Value = Operand> {
    prop_oneof![
        3 => (1i64..3).prop_map(Operand::Constant),
        1 => (0..registers).prop_map(|r| Operand::Register(RegisterId(r))),
    ]
}

const REGISTERS: u16 = 2;

/// Kind of a read-modify-write, without its operand.
#[derive(Clone, Copy, Debug)]
enum RmwKind {
    Exchange,
    Fetch(ArithmeticOperation),
    /// The expected value, and true if the failure semantics also acquire.
    CompareExchange(i64, bool),
}

fn rmw_kind() -> impl Strategy<Value = RmwKind> {
    prop_oneof![
        3 => Just(RmwKind::Exchange),
        2 => Just(RmwKind::Fetch(ArithmeticOperation::Add)),
        1 => Just(RmwKind::Fetch(ArithmeticOperation::Or)),
        3 => (0..2i64, any::<bool>())
            .prop_map(|(compare, acquires)| RmwKind::CompareExchange(compare, acquires)),
    ]
}

fn instruction() -> impl Strategy<Value = InstructionKind> {
    use Order::{Acquire, AcquireRelease, Relaxed, Release};
    prop_oneof![
        4 => (0..REGISTERS, location(), access(&[Relaxed, Acquire])).prop_map(|(r, (l, class), access)| {
            InstructionKind::load(RegisterId(r), MemoryPlace::whole_location(LocationId(l), class), access)
        }),
        4 => (location(), operand(REGISTERS), access(&[Relaxed, Release])).prop_map(|((l, class), value, access)| {
            InstructionKind::store(MemoryPlace::whole_location(LocationId(l), class), value, access)
        }),
        2 => (
            0..REGISTERS,
            location(),
            operand(REGISTERS),
            rmw_kind(),
            scope(),
            semantics(&[Relaxed, Acquire, Release, AcquireRelease]),
        )
            .prop_map(|(r, (l, class), value, operation, scope, semantics)| {
                let operation = match operation {
                    RmwKind::Exchange => RmwOperation::Exchange(value),
                    RmwKind::Fetch(operation) => RmwOperation::Fetch(operation, value),
                    RmwKind::CompareExchange(compare, unequal) => RmwOperation::CompareExchange {
                        compare: Operand::Constant(compare),
                        value,
                        // The semantics for inequality are never stronger than those for equality.
                        unequal: if semantics.order.acquires() && unequal {
                            Semantics { order: Order::Acquire, make_available: false, ..semantics }
                        } else {
                            Semantics::RELAXED
                        },
                    },
                };
                let place = MemoryPlace::whole_location(LocationId(l), class);
                InstructionKind::rmw(RegisterId(r), place, operation, scope, semantics)
            }),
        2 => (scope(), semantics(&[Acquire, Release, AcquireRelease]))
            .prop_map(|(scope, semantics)| InstructionKind::Fence { scope, semantics }),
        1 => (
            scope(),
            proptest::option::of(semantics(&[Acquire, Release, AcquireRelease])),
            0..2u8,
            proptest::option::weighted(0.25, (0..2u8, proptest::option::of(1..3u32))),
        )
            .prop_map(|(memory_scope, semantics, id, named)| {
                InstructionKind::ControlBarrier(ControlBarrier {
                    execution_scope: Scope::Workgroup,
                    memory_scope,
                    semantics,
                    id: id.to_string(),
                    resource: named.map(|(resource, _)| resource.to_string()),
                    quorum: named.and_then(|(_, quorum)| quorum),
                })
            }),
        // Dependencies through registers.
        1 => (0..REGISTERS, 0..REGISTERS, 0..3i64).prop_map(|(to, from, addend)| {
            InstructionKind::Compute(Compute::Arithmetic {
                destination: RegisterId(to),
                operation: ArithmeticOperation::Add,
                left: Operand::Register(RegisterId(from)),
                right: Operand::Constant(addend),
            })
        }),
        1 => Just(InstructionKind::System(SystemOperation::AvailableToDevice)),
        1 => Just(InstructionKind::System(SystemOperation::VisibleFromDevice)),
    ]
}

/// A branch at the end of a thread that tests its first register.
#[derive(Clone, Copy, Debug)]
struct Guard {
    relation: Comparison,
    constant: i64,
    /// True if the branch goes to the start of the thread instead of past its last instruction.
    back: bool,
}

fn guard() -> impl Strategy<Value = Guard> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let relations = [Equal, Equal, NotEqual, NotEqual, GreaterOrEqual, LessOrEqual, Greater, Less];
    (proptest::sample::select(relations.to_vec()), 0..2i64, proptest::bool::weighted(0.3))
        .prop_map(|(relation, constant, back)| Guard { relation, constant, back })
}

type ThreadParts = (Vec<InstructionKind>, Placement, Option<Guard>);

/// A thread. Depending on its first register, its last instruction may be skipped, or the thread may be
/// repeated.
fn thread() -> impl Strategy<Value = ThreadParts> {
    let place = (prop_oneof![6 => Just(0..1u32), 1 => Just(0..2u32)].prop_flat_map(|r| r), 0..2u32, 0..2u32);
    (proptest::collection::vec(instruction(), 1..4), place, proptest::option::weighted(0.2, guard()))
        .prop_map(|(instructions, (queue_family, workgroup, subgroup), guard)| {
            (instructions, Placement { queue_family, queue: 0, workgroup, subgroup }, guard)
        })
}

/// Generates a comparison of a register or a location with a small number, or a conjunction of two.
fn condition() -> impl Strategy<Value = Condition> {
    let term = prop_oneof![
        3 => (0..2u16, 0..REGISTERS).prop_map(|(thread, r)| Term::Register(ThreadId(thread), RegisterId(r))),
        1 => (0..4u16).prop_map(|location| Term::Location(LocationId(location), 0)),
    ];
    let compare = (term, any::<bool>(), 0..3i64).prop_map(|(left, equal, number)| Condition::Compare {
        left,
        comparison: if equal { Comparison::Equal } else { Comparison::NotEqual },
        right: Term::Constant(number),
    });
    (proptest::collection::vec(compare, 1..3), 0..3u8).prop_map(|(parts, how)| {
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or(Condition::True);
        parts.fold(first, |left, right| match how {
            0 => Condition::Or(Box::new(left), Box::new(right)),
            1 => Condition::And(Box::new(left), Box::new(right)),
            _ => Condition::And(Box::new(left), Box::new(Condition::Not(Box::new(right)))),
        })
    })
}

type SyncParts = ((u16, u16), (Option<u16>, Option<u16>));

/// A random test with two or three threads, four names of three locations, and a condition. Some have a
/// filter, system synchronization of whole threads or of single instructions, or an observed location.
pub fn test() -> impl Strategy<Value = Test> {
    let point = || proptest::option::weighted(0.3, 0..3u16);
    (
        proptest::collection::vec(thread(), 2..4),
        proptest::option::weighted(0.25, ((0..2u16, 0..2u16), (point(), point()))),
        proptest::option::weighted(0.3, location()),
        condition(),
        proptest::option::weighted(0.15, condition()),
    )
        .prop_map(|(threads, sync, observed, condition, filter)| {
            let mut test = build_test(threads, sync, observed.map(|(location, _)| location));
            if let Some(question) = &mut test.question {
                question.condition = condition;
            }
            test.filter = filter;
            test
        })
}

/// Gives the barriers with one instance and resource the quorum of the first of them.
fn equalize_quorums(threads: &mut [Thread]) {
    let mut firsts: Vec<ControlBarrier> = Vec::new();
    for instruction in threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
        let InstructionKind::ControlBarrier(barrier) = &mut instruction.kind else { continue };
        match firsts.iter().find(|first| first.is_same_barrier(barrier)) {
            Some(first) => barrier.quorum = first.quorum,
            None => firsts.push(barrier.clone()),
        }
    }
}

fn build_test(threads: Vec<ThreadParts>, sync: Option<SyncParts>, observed: Option<u16>) -> Test {
    let location = |name: &str, init| Location { init, ..Location::new(name) };
    let instruction = |kind| Instruction { kind, span: Span::default() };
    let threads = threads
        .into_iter()
        .enumerate()
        .map(|(number, (kinds, placement, guard))| {
            let mut instructions: Vec<Instruction> = kinds.into_iter().map(instruction).collect();
            let mut labels = Vec::new();
            let last = instructions.len() - 1;
            let movable = !matches!(instructions[last].kind, InstructionKind::ControlBarrier(_));
            let branch = |guard: Guard| {
                InstructionKind::Flow(Flow::Branch {
                    relation: guard.relation,
                    left: Operand::Register(RegisterId(0)),
                    right: Operand::Constant(guard.constant),
                    target: LabelId(0),
                })
            };
            let label = || instruction(InstructionKind::Flow(Flow::Label(LabelId(0))));
            match guard {
                Some(guard) if guard.back && movable => {
                    labels.push(Label { name: "LC00".to_owned() });
                    instructions.insert(0, label());
                    instructions.push(instruction(branch(guard)));
                }
                Some(guard) if !guard.back && last > 0 && movable => {
                    labels.push(Label { name: "LC00".to_owned() });
                    instructions.insert(last, instruction(branch(guard)));
                    instructions.push(label());
                }
                _ => {}
            }
            Thread {
                number: number as u32,
                place: ThreadPlace::Device(placement),
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
    let mut threads: Vec<Thread> = threads;
    equalize_quorums(&mut threads);
    let point = |thread: u16, instruction: Option<u16>| {
        let count = threads[usize::from(thread)].instructions.len() as u16;
        SyncPoint { thread: ThreadId(thread), instruction: instruction.filter(|i| *i < count) }
    };
    let system_sync = sync
        .filter(|((from, to), _)| from != to)
        .map(|((from, to), (first, second))| SystemSync {
            from: point(from, first),
            to: point(to, second),
            span: Span::default(),
        })
        .into_iter()
        .collect();
    Test {
        locations: vec![
            location("x", LocationInit::Constant(0)),
            location("y", LocationInit::AliasOf(LocationId(0))),
            location("z", LocationInit::Constant(0)),
            location("w", LocationInit::Constant(1)),
        ],
        threads,
        system_sync,
        listed_terms: observed.map(|l| Term::Location(LocationId(l), 0)).into_iter().collect(),
        question: Some(Question {
            kind: QuestionKind::Exists,
            condition: Condition::True,
            span: Span::default(),
        }),
        ..Test::new("random", Dialect::Vulkan)
    }
}

/// The same with sequentially consistent operations; half of these have the strongest possible order.
pub fn sequential() -> impl Strategy<Value = Test> {
    (test(), any::<u64>()).prop_map(|(mut test, chosen)| {
        let instructions = test.threads.iter_mut().flat_map(|thread| &mut thread.instructions);
        for (index, instruction) in instructions.enumerate() {
            let sequential = chosen >> (index % 64) & 1 == 1;
            let is_strongest = |semantics: &Semantics, store_or_load: bool| {
                semantics.order != Order::Relaxed
                    && (store_or_load || semantics.order == Order::AcquireRelease)
            };
            match &mut instruction.kind {
                InstructionKind::Fence { semantics, .. } => {
                    semantics.sequential = sequential && is_strongest(semantics, false);
                }
                kind => {
                    if let Some(access) = kind.access_mut() {
                        let rmw = matches!(access.kind, AccessKind::Rmw { .. });
                        if let Access::Atomic { semantics, .. } = &mut access.strength {
                            semantics.sequential = sequential && is_strongest(semantics, !rmw);
                        }
                    }
                }
            }
        }
        test
    })
}

/// A random test in which one initial value is undefined.
pub fn undefined() -> impl Strategy<Value = Test> {
    (test(), proptest::bool::ANY).prop_map(|(mut test, first)| {
        test.locations[if first { 0 } else { 2 }].init = LocationInit::Undefined;
        test
    })
}

/// Generates a test whose accesses to a two-byte location have one or two bytes.
pub fn sizes() -> impl Strategy<Value = Test> {
    (test(), proptest::collection::vec(0..4u8, 12)).prop_map(|(mut test, choices)| {
        let mut choices = choices.into_iter().cycle();
        for location in &mut test.locations {
            location.scalar = Some(ScalarType::U16);
        }
        for instruction in test.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
            let Some(access) = instruction.kind.access_mut() else { continue };
            if access.place.location.0 < 2 {
                let choice = choices.next().unwrap_or_default();
                if choice < 2 {
                    (access.place.offset, access.place.scalar) = (u32::from(choice), Some(ScalarType::U8));
                }
            }
            // Both bytes of the stored value are significant.
            if let AccessKind::Store(values) = &mut access.kind {
                *values = values.map(|value| match value {
                    Operand::Constant(value) => Operand::Constant(value * 0x101),
                    register @ Operand::Register(_) => register,
                });
            }
        }
        test
    })
}

/// A random test with a vector of two bytes, accessed as a whole, by component and, if `mixed`, by numbers of
/// the same two bytes.
pub fn vectors(mixed: bool) -> impl Strategy<Value = Test> {
    (test(), proptest::collection::vec(0..8u8, 24)).prop_map(move |(mut test, choices)| {
        let mut choices = choices.into_iter().cycle();
        let mut next = move || choices.next().unwrap_or_default();
        for location in &mut test.locations[..2] {
            (location.scalar, location.components) = (Some(ScalarType::U8), 2);
        }
        for instruction in test.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
            let kind = &mut instruction.kind;
            let choice = next();
            let Some(access) = kind.access_mut().filter(|access| access.place.location.0 < 2) else {
                continue;
            };
            let byte = (u32::from(choice % 2), Some(ScalarType::U8));
            match (choice, access.strength) {
                (0..=3, Access::Private | Access::NonPrivate | Access::Coherent { .. }) => {
                    access.kind = match access.kind {
                        // Either order of the two registers.
                        AccessKind::Load(_) => AccessKind::Load(
                            Components::from_slice(
                                &[0, 1].map(|index| RegisterId((index + u16::from(choice)) % REGISTERS)),
                            )
                            .unwrap(),
                        ),
                        AccessKind::Store(values) => {
                            let second = match values.first() {
                                Operand::Constant(constant) => Operand::Constant(constant + 2),
                                register @ Operand::Register(_) => register,
                            };
                            AccessKind::Store(Components::from_slice(&[values.first(), second]).unwrap())
                        }
                        other @ (AccessKind::Rmw { .. } | AccessKind::Await { .. }) => other,
                    };
                    (access.place.offset, access.place.scalar) = (0, Some(ScalarType::U8));
                }
                (4 | 5, _) if mixed => {
                    (access.place.offset, access.place.scalar) = (0, Some(ScalarType::U16));
                }
                _ => (access.place.offset, access.place.scalar) = byte,
            }
        }
        let component = next() % 2;
        let of_vector = |term: &mut Term| {
            if let Term::Location(location, index) = term
                && location.0 < 2
            {
                *index = component;
            }
        };
        test.listed_terms.iter_mut().for_each(of_vector);
        test.filter.iter_mut().for_each(|condition| map_terms(condition, &of_vector));
        test.question.iter_mut().for_each(|question| map_terms(&mut question.condition, &of_vector));
        test
    })
}

fn map_terms(condition: &mut Condition, change: &impl Fn(&mut Term)) {
    match condition {
        Condition::True => {}
        Condition::Compare { left, right, .. } => {
            change(left);
            change(right);
        }
        Condition::And(left, right) | Condition::Or(left, right) => {
            map_terms(left, change);
            map_terms(right, change);
        }
        Condition::Not(inner) => map_terms(inner, change),
    }
}

/// Returns the test with an instruction for each component of a vector access. Pairs of `ssw` then order
/// whole threads.
pub fn split_vectors(test: &Test) -> Test {
    let mut written = test.clone();
    for thread in &mut written.threads {
        let components = thread.instructions.iter().flat_map(|instruction| {
            let one = |kind: &InstructionKind| Instruction { kind: kind.clone(), span: instruction.span };
            match &instruction.kind {
                InstructionKind::Access(access) => {
                    access.scalar_accesses().map(|lane| one(&InstructionKind::Access(lane))).collect()
                }
                other => vec![one(other)],
            }
        });
        thread.instructions = components.collect();
    }
    written
}

fn remove_branches(thread: &mut Thread) {
    thread.labels.clear();
    thread.instructions.retain(|instruction| !matches!(instruction.kind, InstructionKind::Flow(_)));
}

/// Generates a test whose last thread is a host thread and whose memory dependencies have access masks.
pub fn hosts() -> impl Strategy<Value = Test> {
    (test(), proptest::collection::vec(0..12u8, 24), any::<bool>()).prop_map(
        |(mut test, choices, noncoherent)| {
            let mut choices = choices.into_iter().cycle();
            let mut next = move || choices.next().unwrap_or_default();
            test.locations[0].noncoherent = noncoherent;
            let host = test.threads.len() - 1;
            test.threads[host].place = ThreadPlace::Host;
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
                        InstructionKind::System(SystemOperation::AvailableToDevice) => {
                            *kind = InstructionKind::System(SystemOperation::Available(mask(next())));
                        }
                        InstructionKind::System(SystemOperation::VisibleFromDevice) => {
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
            // Operations of the host are not conditional.
            remove_branches(&mut test.threads[host]);
            for instruction in &mut test.threads[host].instructions {
                let kind = &mut instruction.kind;
                match kind {
                    InstructionKind::Access(MemoryAccess {
                        kind: AccessKind::Load(_) | AccessKind::Store(_),
                        strength,
                        ..
                    }) => place(strength),
                    InstructionKind::Access(MemoryAccess {
                        strength: Access::Atomic { scope, .. }, ..
                    })
                    | InstructionKind::Fence { scope, .. }
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
        let order = if next() < 4 { InterlockOrder::Unordered } else { InterlockOrder::Ordered };
        for (index, thread) in test.threads.iter_mut().enumerate() {
            remove_branches(thread);
            let mut called = index > 0;
            for instruction in &mut thread.instructions {
                let kind = &mut instruction.kind;
                let section =
                    |end| InstructionKind::Interlock(Interlock { end, order, section: "0".to_owned() });
                match kind {
                    InstructionKind::ControlBarrier(_) if !called => {
                        called = true;
                        *kind = InstructionKind::ShaderCall(vec![ThreadId(1)]);
                    }
                    InstructionKind::ControlBarrier(_)
                    | InstructionKind::System(SystemOperation::AvailableToDevice) => {
                        *kind = section(InterlockEnd::Begin);
                    }
                    InstructionKind::System(SystemOperation::VisibleFromDevice) => {
                        *kind = section(InterlockEnd::End)
                    }
                    InstructionKind::Access(MemoryAccess {
                        kind: AccessKind::Load(_) | AccessKind::Store(_),
                        strength: Access::Coherent { scope } | Access::Atomic { scope, .. },
                        ..
                    })
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

/// A random test with cooperative accesses.
pub fn cooperative() -> impl Strategy<Value = Test> {
    (test(), proptest::collection::vec(any::<bool>(), 16)).prop_map(|(mut test, choices)| {
        let mut choices = choices.into_iter().cycle();
        for thread in &mut test.threads {
            remove_branches(thread);
            for instruction in &mut thread.instructions {
                if let InstructionKind::ControlBarrier(barrier) = &mut instruction.kind {
                    barrier.quorum = None;
                }
                if let Some(access) = instruction.kind.access_mut()
                    && !access.strength.is_atomic()
                    && choices.next() == Some(true)
                {
                    access.performer = Performer::Cooperative;
                }
            }
        }
        test
    })
}

/// A random test in the form of a `.test` file: no control flow, constant values, and queries.
pub fn khronos() -> impl Strategy<Value = Test> {
    let value = || prop_oneof![3 => Just(None), 2 => (0i64..4).prop_map(Some)];
    let size = || {
        let comparisons = [Comparison::Equal, Comparison::Greater, Comparison::LessOrEqual];
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
                remove_branches(thread);
                thread.instructions.retain(|i| !matches!(i.kind, InstructionKind::Compute(_)));
                for instruction in &mut thread.instructions {
                    if let Some(access) = instruction.kind.access_mut() {
                        match &mut access.kind {
                            AccessKind::Store(values) => {
                                *values = Components::scalar(number(given.next().flatten()));
                            }
                            AccessKind::Rmw { operation, .. } => {
                                *operation = RmwOperation::Exchange(number(given.next().flatten()));
                            }
                            AccessKind::Load(_) | AccessKind::Await { .. } => {}
                        }
                    }
                }
                read_values.push(thread.instructions.iter().map(|_| given.next().flatten()).collect());
            }
            // Instruction numbers have changed, so pairs order whole threads.
            for sync in &mut test.system_sync {
                (sync.from.instruction, sync.to.instruction) = (None, None);
            }
            test.listed_terms.clear();
            test.filter = None;
            test.question = None;
            test.dialect = Dialect::Khronos;
            let queries = queries
                .into_iter()
                .map(|(kind, terms)| SatisfiabilityLine::new(kind, false, terms))
                .collect();
            test.khronos = Some(Khronos { queries, read_values });
            test
        },
    )
}

fn number(value: Option<i64>) -> Operand {
    Operand::Constant(value.unwrap_or(litmus::khronos::NO_VALUE))
}
