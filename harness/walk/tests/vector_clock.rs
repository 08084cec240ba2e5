//! Persistent vector clocks.

use std::collections::BTreeMap;

use walk::vector_clock::VectorClock;

fn clock_from_map(all: &BTreeMap<u32, u32>) -> VectorClock {
    let mut known = VectorClock::default();
    all.iter().for_each(|(number, time)| known.advance_to(*number, *time));
    known
}

/// Random updates, joins and restrictions agree with a `BTreeMap`.
#[test]
fn clock_agrees_with_a_map() {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut all: Vec<(VectorClock, BTreeMap<u32, u32>)> = vec![Default::default()];
    for _ in 0..20_000 {
        let one = random(all.len() as u64) as usize;
        let other = random(all.len() as u64) as usize;
        let (mut new, mut map) = all[one].clone();
        match random(4) {
            0 => {
                let (theirs, more) = &all[other];
                assert_eq!(
                    new.is_at_least(theirs),
                    more.iter().all(|(number, time)| map.get(number).is_some_and(|known| known >= time))
                );
                new = new.joined_with(theirs);
                for (number, time) in more {
                    let known = map.entry(*number).or_default();
                    *known = (*known).max(*time);
                }
            }
            1 => {
                let first = random(2_000) as u32;
                let end = first + random(1_500) as u32;
                new = new.restrict_to(first, end);
                map.retain(|number, _| (first..end).contains(number));
            }
            _ => {
                let spread = [40, 700, 20_000, 1 << 32][random(4) as usize];
                let (number, time) = (random(spread) as u32, 1 + random(5) as u32);
                new.advance_to(number, time);
                let known = map.entry(number).or_default();
                *known = (*known).max(time);
            }
        }
        assert!(map.iter().all(|(number, time)| new.timestamp_of(*number) == *time));
        let number = random(3_000) as u32;
        assert_eq!(new.timestamp_of(number), map.get(&number).copied().unwrap_or(0));
        assert_eq!(new.is_empty(), map.is_empty());
        let same = clock_from_map(&map);
        assert!(new.is_at_least(&same) && same.is_at_least(&new));
        match all.len() < 40 {
            true => all.push((new, map)),
            false => all[other] = (new, map),
        }
    }
}

/// A join with a dominated clock allocates nothing.
#[test]
fn join_reuses_the_dominating_clock() {
    let one = clock_from_map(&(0..3_000).map(|number| (number, 2)).collect());
    let other = clock_from_map(&(0..3_000).step_by(7).map(|number| (number, 1)).collect());
    assert!(one.joined_with(&other).ptr_eq(&one) && other.joined_with(&one).ptr_eq(&one));
    let mut more = one.clone();
    more.advance_to(1, 3);
    assert!(!more.ptr_eq(&one) && one.joined_with(&more).ptr_eq(&more) && more.timestamp_of(0) == 2);
}
