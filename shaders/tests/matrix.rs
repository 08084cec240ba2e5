//! Orders × scopes × semantics × placements × instructions. Each legal combination gives a valid module that
//! corresponds to the test; each illegal one is refused with a rule.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

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

/// Returns the place that the first instruction of a test accesses.
fn first_access_place(test: &mut Test) -> &mut MemoryPlace {
    &mut test.threads[0].instructions[0].kind.access_mut().unwrap().place
}

/// Returns a modified relaxed load.
fn changed_load(change: &dyn Fn(&mut MemoryAccess)) -> InstructionKind {
    let mut kind = load(0, 0, atomic(Scope::Device, Order::Relaxed));
    change(kind.access_mut().unwrap());
    kind
}

#[test]
fn unplaceable_threads_are_refused_by_name() {
    let relaxed = atomic(Scope::Device, Order::Relaxed);
    let simple = || single_instruction_test(load(0, 0, relaxed));
    let change = |edit: &dyn Fn(&mut Test)| {
        let mut test = simple();
        edit(&mut test);
        rejected_rule(&test)
    };
    let class = |wanted: StorageClass| {
        change(&|test| {
            first_access_place(test).class = wanted;
        })
    };
    let add = |kind: InstructionKind| {
        change(&|test| {
            test.threads[0].instructions.push(Instruction { kind: kind.clone(), span: Span::default() });
        })
    };
    let named = |resource: Option<&str>, quorum| {
        add(InstructionKind::ControlBarrier(ControlBarrier {
            execution_scope: Scope::Workgroup,
            memory_scope: Scope::Workgroup,
            semantics: None,
            id: "0".to_owned(),
            resource: resource.map(str::to_owned),
            quorum,
        }))
    };
    let fetch = |operation| {
        add(rmw(0, 0, RmwOperation::Fetch(operation, constant(1)), Scope::Device, semantics(Order::Relaxed)))
    };
    let cbar = |id| barrier(Scope::Workgroup, Scope::Workgroup, None, id);
    let two = |first: Vec<InstructionKind>, second: Vec<InstructionKind>| {
        rejected_rule(
            &Builder::new("two", &["x"])
                .thread(thread_place(0, 0), first)
                .thread(thread_place(0, 1), second)
                .test,
        )
    };
    let jump = |target| InstructionKind::Flow(Flow::Goto(LabelId(target)));
    let label = |label| InstructionKind::Flow(Flow::Label(LabelId(label)));
    let branch = InstructionKind::Flow(Flow::Branch {
        relation: BranchRelation::Equal,
        left: register(0),
        right: constant(0),
        target: LabelId(0),
    });
    let crowd = (0..9).fold(Builder::new("crowd", &["x"]), |crowd, _| {
        crowd.thread(thread_place(0, 0), vec![load(0, 0, relaxed)])
    });
    let cases = [
        change(&|test| test.dialect = litmus::Dialect::Hsa),
        add(InstructionKind::Compute(Compute::Move { destination: RegisterId(0), value: constant(1) })),
        change(&|test| test.threads.clear()),
        change(&|test| test.threads[0].place = ThreadPlace::Host),
        change(&|test| {
            let point = SyncPoint { thread: ThreadId(0), instruction: None };
            test.system_sync.push(SystemSync { from: point, to: point, span: Span::default() });
        }),
        add(InstructionKind::System(SystemOperation::AvailableToDevice)),
        add(InstructionKind::System(SystemOperation::VisibleFromDevice)),
        change(&|test| {
            let mut other = test.threads[0].clone();
            other.place =
                ThreadPlace::Device(Placement { queue_family: 1, queue: 0, workgroup: 0, subgroup: 0 });
            test.threads.push(other);
        }),
        change(&|test| {
            first_access_place(test).scalar = Some(ScalarType::U8);
        }),
        change(&|test| {
            first_access_place(test).offset = 2;
        }),
        change(&|test| {
            first_access_place(test).offset = 16;
        }),
        change(&|test| {
            test.locations[0].scalar = Some(ScalarType::F32);
            test.locations[0].init = LocationInit::Constant(-1);
        }),
        rejected_rule(
            &litmus::parse(
                "VULKAN v { image u32x2 v = 0; } P0@sg 0, wg 0, qf 0 ; st.sc2 v, {1, 2} ;",
                "vector",
            )
            .unwrap(),
        ),
        rejected_rule(
            &litmus::parse(
                "VULKAN v { workgroup u32x2 v = 0; u64 w aliases v; } P0@sg 0, wg 0, qf 0 ; \
                     st.sc1 v, {1, 2} ; exists (w == 1)",
                "alias",
            )
            .unwrap(),
        ),
        change(&|test| {
            test.locations[0].scalar = Some(ScalarType::F32);
            let or = RmwOperation::Fetch(ArithmeticOperation::Or, constant(1));
            let kind = rmw(0, 0, or, Scope::Device, semantics(Order::Relaxed));
            test.threads[0].instructions[0].kind = kind;
        }),
        change(&|test| {
            test.locations[0].scalar = Some(ScalarType::U64);
            first_access_place(test).class = StorageClass::Image;
        }),
        change(&|test| {
            first_access_place(test).class = StorageClass::Workgroup;
            let mut other = test.threads[0].clone();
            other.place = thread_place(1, 0);
            test.threads.push(other);
        }),
        change(&|test| test.locations[0].reference = Some(Reference::Image)),
        class(StorageClass::Output),
        add(changed_load(&|access| access.place.address = Some(RegisterId(1)))),
        add(changed_load(&|access| {
            access.kind = AccessKind::Await { destination: RegisterId(0), value: constant(1) };
        })),
        add(changed_load(&|access| {
            let operation = RmwOperation::Exchange(constant(1));
            access.kind = AccessKind::Rmw { destination: None, operation };
        })),
        add(changed_load(&|access| {
            let operation = RmwOperation::Exchange(constant(1));
            access.kind = AccessKind::Rmw { destination: Some(RegisterId(0)), operation };
            access.strength = Access::NonPrivate;
        })),
        add(changed_load(&|access| {
            access.kind = AccessKind::Load(Components::from_slice(&[RegisterId(0), RegisterId(1)]).unwrap());
            access.place.scalar = Some(ScalarType::U8);
        })),
        add(load(0, 0, atomic(Scope::CrossDevice, Order::Relaxed))),
        add(load(0, 0, Access::Coherent { scope: Scope::CrossDevice })),
        add(load(0, 0, atomic(Scope::ShaderCall, Order::Relaxed))),
        add(load(0, 0, Access::Coherent { scope: Scope::FragmentInterlock })),
        add(InstructionKind::ShaderCall(vec![ThreadId(1)])),
        add(changed_load(&|access| {
            (access.strength, access.performer) = (Access::NonPrivate, Performer::Cooperative);
        })),
        add(InstructionKind::Interlock(litmus::Interlock {
            end: litmus::InterlockEnd::Begin,
            order: litmus::InterlockOrder::Ordered,
            section: "0".to_owned(),
        })),
        add(InstructionKind::System(litmus::SystemOperation::Available(litmus::AccessMask::NONE))),
        add(InstructionKind::System(litmus::SystemOperation::Submit(vec![ThreadId(0)]))),
        fetch(ArithmeticOperation::Multiply),
        fetch(ArithmeticOperation::Divide),
        add(InstructionKind::Compute(Compute::Arithmetic {
            destination: RegisterId(0),
            operation: ArithmeticOperation::Divide,
            left: constant(1),
            right: constant(1),
        })),
        two(vec![label(0), jump(0)], vec![]),
        two(vec![label(0), store(0, constant(1), relaxed), branch.clone()], vec![]),
        two(
            vec![
                label(0),
                InstructionKind::Compute(Compute::Arithmetic {
                    destination: RegisterId(0),
                    operation: ArithmeticOperation::Add,
                    left: register(0),
                    right: constant(1),
                }),
                branch.clone(),
            ],
            vec![],
        ),
        two(vec![label(0), cbar("0"), load(0, 0, relaxed), branch.clone()], vec![]),
        named(Some("r"), None),
        named(Some("r"), Some(2)),
        add(barrier(Scope::Device, Scope::Device, None, "0")),
        two(vec![branch, cbar("0"), label(0)], vec![cbar("0")]),
        two(vec![jump(0), cbar("0"), label(0)], vec![cbar("0")]),
        two(vec![cbar("0")], vec![]),
        two(vec![cbar("0")], vec![cbar("00")]),
        two(vec![cbar("0"), cbar("1")], vec![cbar("1"), cbar("0")]),
        two(vec![cbar("0"), cbar("0")], vec![cbar("0"), cbar("0")]),
        rejected_rule(&crowd.test),
    ];
    insta::assert_snapshot!(cases.join("\n"));
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
