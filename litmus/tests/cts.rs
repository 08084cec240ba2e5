//! CTS names: the numbers of each kind, and a matching litmus test for each.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use litmus::cts::{self, CtsCase};
use litmus::{Access, AccessKind, InstructionKind, RmwOperation, Scope, StorageClass};

/// Occurrences of each word, by parameter, in the names of message passing or write after read.
const COUNTS: [&[(&str, usize)]; 11] = [
    &[("core11", 159), ("ext", 8096)],
    &[("u32", 4335), ("u64", 1488), ("f32", 1648), ("f64", 784)],
    &[("coherent", 4207), ("noncoherent", 4048)],
    &[
        ("fence_fence", 963),
        ("fence_atomic", 824),
        ("atomic_fence", 824),
        ("atomic_atomic", 5568),
        ("control_barrier", 38),
        ("control_and_memory_barrier", 38),
    ],
    &[("atomicwrite", 5471), ("atomicrmw", 2784)],
    &[("device", 2415), ("queuefamily", 2358), ("workgroup", 1029), ("subgroup", 2453)],
    &[("payload_local", 3822), ("payload_nonlocal", 4433)],
    &[("buffer", 2742), ("image", 2230), ("workgroup", 611), ("physbuffer", 2672)],
    &[("guard_local", 3790), ("guard_nonlocal", 4465)],
    &[("buffer", 2794), ("image", 2206), ("workgroup", 599), ("physbuffer", 2656)],
    &[("comp", 4015), ("vert", 2120), ("frag", 2120)],
];

#[test]
fn names_are_distinct_and_as_many_as_in_the_cts() {
    let names: Vec<String> = cts::all_cases().map(|case| case.cts_name()).collect();
    assert_eq!(names.len(), 2 * 8255 + 576 + 3);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for shape in ["message_passing.", "write_after_read."] {
        let generated: Vec<Vec<&str>> = names
            .iter()
            .filter_map(|name| name.strip_prefix(shape))
            .map(|rest| rest.split('.').collect::<Vec<_>>())
            .filter(|words| words.len() == COUNTS.len())
            .collect();
        assert_eq!(generated.len(), 8255);
        for (place, expected) in COUNTS.iter().enumerate() {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for words in &generated {
                *counts.entry(words[place]).or_default() += 1;
            }
            assert_eq!(counts, expected.iter().copied().collect(), "{shape} place {place}");
        }
    }
    let first = "message_passing.core11.u32.coherent.fence_fence.atomicwrite.device.payload_local.buffer.guard_local.buffer.comp";
    assert_eq!(names[0], first);
    assert_eq!(names.iter().filter(|name| name.starts_with("transitive.")).count(), 576);
}

#[test]
fn a_name_is_a_program_and_a_variant() {
    let mut forms = BTreeSet::new();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for case in cts::all_cases() {
        assert!(
            forms.insert((case.test_id(), case.variant())),
            "{case}: another name has its id and variant"
        );
        let text = case.litmus_text();
        assert_eq!(*texts.entry(case.test_id()).or_insert_with(|| text.clone()), text, "{case}");
    }
    assert_eq!(texts.len(), 2771);
    for (id, text) in &texts {
        let test = litmus::parse(text, id).unwrap();
        assert!(test.metadata.unknown_keys.is_empty(), "{id}");
        assert_eq!(litmus::parse(&litmus::print(&test), id).unwrap().threads.len(), test.threads.len());
    }
}

fn range(word: &str) -> Scope {
    match word {
        "device" => Scope::Device,
        "queuefamily" => Scope::QueueFamily,
        "workgroup" => Scope::Workgroup,
        "subgroup" => Scope::Subgroup,
        other => panic!("no scope `{other}`"),
    }
}

/// The program of a CTS name uses the features in its parameters.
#[test]
fn programs_have_the_features_in_their_names() {
    for case in cts::all_cases() {
        let CtsCase::Generated(generated) = case else { continue };
        if !case.variant().is_empty() {
            continue;
        }
        let test = litmus::parse(&case.litmus_text(), &case.test_id()).unwrap();
        let mut classes = BTreeSet::new();
        let mut scopes = BTreeSet::new();
        let (mut exchanges, mut fences, mut barriers, mut coherent) = (0, 0, 0, 0);
        let mut early_fences = 0;
        for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
            match &instruction.kind {
                InstructionKind::Access(access) => {
                    classes.insert(access.place.class);
                    scopes.extend(access.strength.scope());
                    match access.strength {
                        Access::Coherent { .. } => coherent += 1,
                        Access::Atomic { .. } | Access::NonPrivate => {}
                        Access::Private => panic!("{case}: a private access"),
                    }
                    if let AccessKind::Rmw { operation, .. } = access.kind {
                        assert!(matches!(operation, RmwOperation::Exchange(_)), "{case}");
                        exchanges += 1;
                    }
                }
                InstructionKind::Fence { scope, semantics } => {
                    // The fence after the early read of the guard has a scope without the other thread.
                    if *scope < range(generated.range.name()) {
                        assert_eq!(semantics.order, litmus::Order::Acquire, "{case}");
                        early_fences += 1;
                    } else {
                        fences += 1;
                        scopes.insert(*scope);
                    }
                }
                InstructionKind::ControlBarrier(barrier) => {
                    barriers += 1;
                    scopes.insert(barrier.memory_scope);
                    assert_eq!(barrier.execution_scope, barrier.memory_scope, "{case}");
                }
                _ => {}
            }
        }
        let name = case.cts_name();
        let has = |word: &str| name.split('.').any(|part| part == word);
        let scope = range(generated.range.name());
        assert_eq!(scopes, [scope].into(), "{case}");
        assert_eq!(coherent, if has("coherent") { 2 } else { 0 }, "{case}");
        assert_eq!(exchanges, if has("atomicrmw") { 2 } else { 0 }, "{case}");
        let control = has("control_barrier") || has("control_and_memory_barrier");
        assert_eq!(barriers, if control { 2 } else { 0 }, "{case}");
        assert_eq!(early_fences, usize::from(!control && scope != Scope::Subgroup), "{case}");
        let expected_fences = match generated.sync.name() {
            "fence_fence" => 2,
            "fence_atomic" | "atomic_fence" => 1,
            "control_and_memory_barrier" => 4,
            _ => 0,
        };
        assert_eq!(fences, expected_fences, "{case}");
        let class = |storage: &str| match storage {
            "image" => StorageClass::Image,
            "workgroup" => StorageClass::Workgroup,
            _ => StorageClass::Buffer,
        };
        let mut expected = BTreeSet::from([class(generated.payload.storage.name())]);
        if !control {
            expected.insert(class(generated.guard.storage.name()));
        }
        assert_eq!(classes, expected, "{case}");
        // Threads are as distant as the scope permits, and in one workgroup if workgroup memory requires it.
        let places: Vec<_> = test.threads.iter().map(|thread| thread.place).collect();
        let [litmus::ThreadPlace::Device(left), litmus::ThreadPlace::Device(right)] = places[..] else {
            panic!("{case}")
        };
        let together = expected.contains(&StorageClass::Workgroup);
        assert_eq!(left.workgroup == right.workgroup, scope <= Scope::Workgroup || together, "{case}");
        assert_eq!(
            (left.workgroup, left.subgroup) == (right.workgroup, right.subgroup),
            scope == Scope::Subgroup
        );
    }
}
