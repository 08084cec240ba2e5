//! Orders × scopes × semantics × placements × instructions. Each legal combination gives a valid module that
//! corresponds to the test; each illegal one is refused with a rule.

use crate::common;

use common::*;
use litmus::*;
use shaders::CompileError;
use shaders::rules::{Rule, SemanticsRule};

const ORDERS: [Order; 4] = [Order::Relaxed, Order::Acquire, Order::Release, Order::AcquireRelease];
const SCOPES: [Scope; 5] =
    [Scope::Invocation, Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device];

/// Every semantics, legal or not: orders, sets of storage classes, availability, visibility.
fn all_semantics() -> impl Iterator<Item = Semantics> {
    ORDERS.into_iter().flat_map(|order| {
        (0..16).flat_map(move |classes| {
            [(false, false), (true, false), (false, true), (true, true)].into_iter().map(
                move |(make_available, make_visible)| Semantics {
                    order,
                    classes: StorageClassSet(classes),
                    make_available,
                    make_visible,
                    ..Semantics::RELAXED
                },
            )
        })
    })
}

/// One instruction of each kind that has memory semantics.
fn instructions(scope: Scope, semantics: Semantics) -> Vec<(&'static str, InstructionKind)> {
    let access = Access::Atomic { scope, semantics };
    let fetch = |operation| rmw(2, 0, RmwOperation::Fetch(operation, constant(3)), scope, semantics);
    let compare_exchange = |unequal| {
        let operation = RmwOperation::CompareExchange { compare: constant(1), value: register(0), unequal };
        rmw(3, 0, operation, scope, semantics)
    };
    vec![
        ("load", load(0, 0, access)),
        ("store", store(0, register(0), access)),
        ("exchange", rmw(1, 0, RmwOperation::Exchange(constant(2)), scope, semantics)),
        ("add", fetch(ArithmeticOperation::Add)),
        ("subtract", fetch(ArithmeticOperation::Subtract)),
        ("and", fetch(ArithmeticOperation::And)),
        ("or", fetch(ArithmeticOperation::Or)),
        ("xor", fetch(ArithmeticOperation::Xor)),
        ("minimum", fetch(ArithmeticOperation::Minimum)),
        ("maximum", fetch(ArithmeticOperation::Maximum)),
        ("compare-exchange", compare_exchange(Semantics::RELAXED)),
        ("compare-exchange with equal failure", compare_exchange(semantics)),
        ("memory barrier", InstructionKind::Fence { scope, semantics }),
        ("control barrier", barrier(Scope::Workgroup, scope, Some(semantics), "0")),
    ]
}

/// The rules of Vulkan, implemented independently.
fn is_legal(instruction: &str, scope: Scope, semantics: Semantics) -> bool {
    let Semantics { order, classes, make_available, make_visible, .. } = semantics;
    let order_matches_classes = (order == Order::Relaxed) == (classes == StorageClassSet::EMPTY);
    let availability = !make_available || matches!(order, Order::Release | Order::AcquireRelease);
    let visibility = !make_visible || matches!(order, Order::Acquire | Order::AcquireRelease);
    let scope_allows = scope != Scope::Invocation || order == Order::Relaxed;
    let kind_allows = match instruction {
        "load" | "compare-exchange with equal failure" => matches!(order, Order::Relaxed | Order::Acquire),
        "store" => matches!(order, Order::Relaxed | Order::Release),
        "memory barrier" => order != Order::Relaxed,
        _ => true,
    };
    order_matches_classes && availability && visibility && scope_allows && kind_allows
}

/// Threads in separate workgroups, subgroups or lanes.
fn placements() -> [[ThreadPlace; 2]; 3] {
    [
        [thread_place(0, 0), thread_place(1, 0)],
        [thread_place(0, 0), thread_place(0, 1)],
        [thread_place(0, 0), thread_place(0, 0)],
    ]
}

#[test]
fn semantics_are_accepted_exactly_where_vulkan_allows_them() {
    let (mut legal, mut illegal) = (0, 0);
    for scope in SCOPES {
        for semantics in all_semantics() {
            for (name, kind) in instructions(scope, semantics) {
                let test = Builder::new(name, &["x"]).thread(thread_place(0, 0), vec![kind]).test;
                match shaders::compile(&test, &LAVAPIPE) {
                    Ok(kernel) => {
                        assert!(is_legal(name, scope, semantics), "{name} {scope:?} {semantics:?}");
                        kernel_oracle::lift::verify(&test, &kernel).unwrap();
                        legal += 1;
                    }
                    Err(error) => {
                        assert!(!is_legal(name, scope, semantics), "{name} {scope:?} {semantics:?}: {error}");
                        illegal += 1;
                    }
                }
            }
        }
    }
    eprintln!("{legal} legal and {illegal} illegal combinations");
    assert!(legal > 1000 && illegal > 10000);
}

/// All legal instructions of a scope and a semantics in one kernel, in each placement, for spirv-val.
#[test]
fn legal_combinations_are_valid_modules() {
    let mut validator = Validator::new();
    for scope in SCOPES {
        for semantics in all_semantics() {
            let kinds: Vec<InstructionKind> = instructions(scope, semantics)
                .into_iter()
                .filter(|(name, _)| is_legal(name, scope, semantics))
                .map(|(_, kind)| kind)
                .collect();
            if kinds.is_empty() {
                continue;
            }
            for (placement, places) in placements().into_iter().enumerate() {
                let mut builder = Builder::new("matrix", &["x"]);
                for place in places {
                    builder = builder.thread(place, kinds.clone());
                }
                let config = if placement == 1 { NARROW } else { LAVAPIPE };
                let kernel = shaders::compile(&builder.test, &config).unwrap();
                kernel_oracle::lift::verify(&builder.test, &kernel).unwrap();
                assert_clean(&kernel);
                // One process per module is slow, so only some sets of storage classes are checked.
                if semantics.classes.0 % 5 <= 1 {
                    validator.validate(&format!("{scope:?} {semantics:?} {places:?}"), &kernel);
                }
            }
        }
    }
    eprintln!("{} modules through spirv-val", validator.validated);
}

#[test]
fn plain_accesses_are_valid_at_every_scope() {
    let mut validator = Validator::new();
    let mut accesses = vec![Access::Private, Access::NonPrivate];
    accesses.extend(SCOPES.map(|scope| Access::Coherent { scope }));
    for places in placements() {
        let kinds: Vec<InstructionKind> = accesses
            .iter()
            .flat_map(|access| [load(0, 0, *access), store(0, register(0), *access)])
            .collect();
        let test =
            Builder::new("plain", &["x"]).thread(places[0], kinds.clone()).thread(places[1], kinds).test;
        let kernel = shaders::compile(&test, &NARROW).unwrap();
        kernel_oracle::lift::verify(&test, &kernel).unwrap();
        validator.validate("plain", &kernel);
    }
}

fn rejected_rule(test: &Test) -> String {
    match shaders::compile(test, &LAVAPIPE) {
        Err(CompileError::NotPlaceable { rule }) => rule,
        other => format!("not refused: {other:?}"),
    }
}

fn single_instruction_test(kind: InstructionKind) -> Test {
    Builder::new("one", &["x"]).thread(thread_place(0, 0), vec![kind]).test
}

#[test]
fn semantics_are_refused_by_the_rule_they_break() {
    let classes = buffer_class();
    let with = |order, classes, make_available, make_visible| Semantics {
        order,
        classes,
        make_available,
        make_visible,
        ..Semantics::RELAXED
    };
    let fence = |scope, semantics| single_instruction_test(InstructionKind::Fence { scope, semantics });
    let atomic_load =
        |semantics| single_instruction_test(load(0, 0, Access::Atomic { scope: Scope::Device, semantics }));
    let atomic_store = |semantics| {
        single_instruction_test(store(0, constant(1), Access::Atomic { scope: Scope::Device, semantics }))
    };
    let exchange = |equal, unequal| {
        let operation = RmwOperation::CompareExchange { compare: constant(0), value: constant(1), unequal };
        single_instruction_test(rmw(0, 0, operation, Scope::Device, equal))
    };
    let none = StorageClassSet::EMPTY;
    let acquire = semantics(Order::Acquire);
    let wide = with(Order::Acquire, classes.with(StorageClass::Image), false, false);
    let cases = [
        (atomic_load(with(Order::Relaxed, classes, false, false)), SemanticsRule::RelaxedWithClasses),
        (atomic_load(with(Order::Acquire, none, false, false)), SemanticsRule::OrderWithoutClass),
        (fence(Scope::Device, Semantics::RELAXED), SemanticsRule::RelaxedBarrier),
        (atomic_load(semantics(Order::Release)), SemanticsRule::ReleaseLoad),
        (atomic_load(semantics(Order::AcquireRelease)), SemanticsRule::ReleaseLoad),
        (atomic_store(semantics(Order::Acquire)), SemanticsRule::AcquireStore),
        (atomic_store(semantics(Order::AcquireRelease)), SemanticsRule::AcquireStore),
        (
            fence(Scope::Device, with(Order::Acquire, classes, true, false)),
            SemanticsRule::AvailableWithoutRelease,
        ),
        (
            fence(Scope::Device, with(Order::Release, classes, false, true)),
            SemanticsRule::VisibleWithoutAcquire,
        ),
        (fence(Scope::Invocation, acquire), SemanticsRule::OrderAtInvocation),
        (
            exchange(semantics(Order::AcquireRelease), semantics(Order::Release)),
            SemanticsRule::ReleaseUnequal,
        ),
        (exchange(semantics(Order::Release), acquire), SemanticsRule::UnequalStronger),
        (exchange(Semantics::RELAXED, acquire), SemanticsRule::UnequalStronger),
        (exchange(acquire, wide), SemanticsRule::UnequalClasses),
        (exchange(acquire, with(Order::Acquire, classes, false, true)), SemanticsRule::UnequalVisible),
    ];
    for (test, rule) in cases {
        assert_eq!(rejected_rule(&test), Rule::Semantics(rule).to_string());
    }
}

/// Tests that have no text, or that the parser refuses.
#[test]
fn unplaceable_tests_in_memory_are_refused_by_name() {
    let relaxed = atomic(Scope::Device, Order::Relaxed);
    let change = |edit: &dyn Fn(&mut Test)| {
        let mut test = single_instruction_test(load(0, 0, relaxed));
        edit(&mut test);
        rejected_rule(&test)
    };
    let place = |edit: &dyn Fn(&mut MemoryPlace)| {
        change(&|test| edit(&mut test.threads[0].instructions[0].kind.access_mut().unwrap().place))
    };
    let changed_load = |edit: &dyn Fn(&mut MemoryAccess)| {
        change(&|test| edit(test.threads[0].instructions[0].kind.access_mut().unwrap()))
    };
    let only = |kind: InstructionKind| rejected_rule(&single_instruction_test(kind));
    let exchange =
        |destination| AccessKind::Rmw { destination, operation: RmwOperation::Exchange(constant(1)) };
    let cases = [
        (change(&|test| test.dialect = Dialect::Hsa), "HSA"),
        (change(&|test| test.threads.clear()), "no threads"),
        (change(&|test| test.locations[0].reference = Some(Reference::Image)), "two classes on one location"),
        (place(&|place| place.offset = 2), "offset into a location"),
        (place(&|place| place.offset = 16), "offset into a location"),
        (place(&|place| place.address = Some(RegisterId(1))), "HSA"),
        (
            changed_load(&|access| {
                access.kind = AccessKind::Await { destination: RegisterId(0), value: constant(1) };
            }),
            "HSA",
        ),
        (changed_load(&|access| access.kind = exchange(None)), "HSA"),
        (
            changed_load(&|access| {
                (access.kind, access.strength) = (exchange(Some(RegisterId(0))), Access::NonPrivate);
            }),
            "plain read-modify-write",
        ),
        (
            changed_load(&|access| {
                let registers = [RegisterId(0), RegisterId(1)];
                access.kind = AccessKind::Load(Components::from_slice(&registers).unwrap());
                access.place.scalar = Some(ScalarType::U8);
            }),
            "atomic vector",
        ),
        (
            only(InstructionKind::Compute(Compute::Move { destination: RegisterId(0), value: constant(1) })),
            "HSA",
        ),
        (only(InstructionKind::ShaderCall(vec![ThreadId(1)])), "shader call"),
        (only(InstructionKind::System(SystemOperation::Submit(vec![ThreadId(0)]))), "host thread"),
    ];
    for (rule, expected) in cases {
        assert_eq!(rule, expected);
    }
}

#[test]
fn a_workgroup_that_does_not_fit_is_refused_with_its_size() {
    let relaxed = atomic(Scope::Device, Order::Relaxed);
    let test = (0..40)
        .fold(Builder::new("crowd", &["x"]), |crowd, subgroup| {
            crowd.thread(thread_place(0, subgroup), vec![load(0, 0, relaxed)])
        })
        .test;
    assert_eq!(
        shaders::compile(&test, &NARROW).map(|_| ()),
        Err(CompileError::WorkgroupTooLarge { needed: 160, available: 128 })
    );
    let config = shaders::KernelConfig { lanes: 2048, ..LAVAPIPE };
    assert_eq!(
        shaders::compile(&single_instruction_test(load(0, 0, relaxed)), &config).map(|_| ()),
        Err(CompileError::WorkgroupTooLarge { needed: 2048, available: 1024 })
    );
}
