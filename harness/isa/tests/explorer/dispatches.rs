//! Faulty barriers between dispatches; the explorer detects each.

use isa::question::DispatchBarrier;
use isa::{FactTable, MachineQuestion, MachineVerdict, Profile, explore};

use crate::sample::{FAMILIES, parsed, question, samples};

/// Explores a merged sample of several dispatches unchanged, and with a change.
fn explore_with_change(
    family: &str,
    name: &str,
    change: impl Fn(&mut MachineQuestion),
) -> [MachineVerdict; 2] {
    let facts = FactTable::shipped().unwrap();
    let sample = samples(family).into_iter().find(|sample| sample.name == format!("{name}@merged")).unwrap();
    let right = question(family, &sample, &parsed(&sample));
    assert_eq!(right.barriers.len(), 1, "{name}");
    let mut wrong = right.clone();
    change(&mut wrong);
    [right, wrong].map(|question| explore(&question, Profile::Documented, &facts))
}

#[track_caller]
fn assert_detected([right, wrong]: [MachineVerdict; 2]) {
    assert!(matches!(right, MachineVerdict::Unreachable(_)), "{right:?}");
    assert!(matches!(wrong, MachineVerdict::Reachable(_)), "{wrong:?}");
}

fn barrier_visible_to(word: &str) -> Vec<DispatchBarrier> {
    vec![DispatchBarrier { visible: vec![word.to_owned()] }]
}

/// A barrier that makes no write visible to reads although the test requires it: caches have stale lines.
#[test]
fn a_barrier_without_invalidation() {
    for family in FAMILIES {
        for name in ["ssw/MP+ssw", "ssw/MP+ssw.masks.sc2", "transfer/MP+transfer"] {
            assert_detected(explore_with_change(family, name, |question| {
                question.barriers = vec![DispatchBarrier::default()]
            }));
            assert_detected(explore_with_change(family, name, |question| {
                question.barriers = barrier_visible_to("shader_write")
            }));
        }
    }
}

/// Writes need no visibility.
#[test]
fn a_barrier_between_writes() {
    for family in FAMILIES {
        for verdict in explore_with_change(family, "ssw/WAW+ssw", |question| {
            question.barriers = barrier_visible_to("shader_write")
        }) {
            assert!(matches!(verdict, MachineVerdict::Unreachable(_)), "{family}: {verdict:?}");
        }
    }
}

/// Without a barrier, the dispatches run concurrently.
#[test]
fn dispatches_without_a_barrier() {
    for family in FAMILIES {
        for name in ["ssw/MP+ssw", "ssw/WAW+ssw", "ssw/ISA2+ssw-rel-acq", "transfer/MP+transfer"] {
            assert_detected(explore_with_change(family, name, |question| {
                question.barriers.clear();
                question.workgroups.iter_mut().for_each(|workgroup| workgroup.dispatch = 0);
            }));
        }
    }
}

/// From GFX10 on, invalidating only the vector caches is not sufficient: the cache of the shader array has
/// stale lines.
#[test]
fn a_barrier_that_omits_a_cache() {
    let without = |cache: isa::facts::CacheName| {
        let mut facts = FactTable::shipped().unwrap();
        for rule in &mut facts.barriers {
            rule.drops.retain(|dropped| *dropped != cache);
        }
        facts
    };
    let is_found = |family: &str, cache| {
        let sample = samples(family).into_iter().find(|sample| sample.name == "ssw/MP+ssw@merged").unwrap();
        let merged = question(family, &sample, &parsed(&sample));
        matches!(explore(&merged, Profile::Documented, &without(cache)), MachineVerdict::Reachable(_))
    };
    for family in FAMILIES {
        let arrays = !["polaris10", "vega10"].contains(&family);
        assert!(is_found(family, isa::facts::CacheName::Vector), "{family}");
        assert_eq!(is_found(family, isa::facts::CacheName::Array), arrays, "{family}");
        // The kernels of this test load through the vector cache only.
        assert!(!is_found(family, isa::facts::CacheName::Scalar), "{family}");
    }
}

/// A dispatch without a preceding barrier, or without workgroups, is refused.
#[test]
fn dispatches_without_barriers_or_workgroups_are_refused() {
    for change in [
        (|question: &mut MachineQuestion| question.barriers.clear()) as fn(&mut MachineQuestion),
        |question| question.barriers.push(DispatchBarrier::default()),
    ] {
        let [_, wrong] = explore_with_change("navi31", "ssw/MP+ssw", change);
        assert!(matches!(wrong, MachineVerdict::Unsupported(_)), "{wrong:?}");
    }
}
