//! Every matrix type computes the same as plain sets of pairs, and satisfies the laws of relation algebra.

use model::matrix::{Bits, Matrix, Matrix16, Matrix32, Matrix64, Matrix256};
use proptest::prelude::*;
use std::collections::BTreeSet;

type Pairs = BTreeSet<(usize, usize)>;
type Events = BTreeSet<usize>;

/// Two relations and two sets over the same number of events.
#[derive(Clone, Debug)]
struct Sample {
    n: usize,
    r: Pairs,
    s: Pairs,
    a: Events,
    b: Events,
}

fn samples(capacity: usize) -> impl Strategy<Value = Sample> {
    (0..=capacity).prop_flat_map(move |n| {
        let event = 0..n.max(1);
        // Sparse, so that closures of large relations are not always full.
        let max_pairs = if n == 0 { 0 } else { 2 * n.min(60) };
        let pairs = move || proptest::collection::btree_set((0..n.max(1), 0..n.max(1)), 0..=max_pairs);
        let events = move || proptest::collection::btree_set(event.clone(), 0..=n.min(60));
        (pairs(), pairs(), events(), events()).prop_map(move |(r, s, a, b)| Sample { n, r, s, a, b })
    })
}

fn compose(r: &Pairs, s: &Pairs) -> Pairs {
    r.iter().flat_map(|(x, y)| s.range((*y, 0)..=(*y, usize::MAX)).map(move |(_, z)| (*x, *z))).collect()
}

fn plus(r: &Pairs) -> Pairs {
    let mut closure = r.clone();
    loop {
        let more: Pairs = compose(&closure, r).difference(&closure).copied().collect();
        if more.is_empty() {
            return closure;
        }
        closure.extend(more);
    }
}

fn identity(n: usize) -> Pairs {
    (0..n).map(|event| (event, event)).collect()
}

fn full(n: usize) -> Pairs {
    (0..n).flat_map(|x| (0..n).map(move |y| (x, y))).collect()
}

fn relation<M: Matrix>(n: usize, pairs: &Pairs) -> M {
    M::from_pairs(n, pairs.iter().copied())
}

fn set<M: Matrix>(events: &Events) -> M::Set {
    M::Set::from_events(events.iter().copied())
}

fn pairs<M: Matrix>(matrix: &M) -> Pairs {
    matrix.pairs().collect()
}

fn events<B: Bits>(set: B) -> Events {
    set.iter().collect()
}

fn assert_agrees_with_sets<M: Matrix>(sample: &Sample) {
    let Sample { n, .. } = *sample;
    let (r, s): (M, M) = (relation(n, &sample.r), relation(n, &sample.s));
    let (a, b) = (set::<M>(&sample.a), set::<M>(&sample.b));
    assert_eq!(pairs(&r), sample.r);
    assert_eq!(r.len(), sample.r.len());
    assert_eq!(r.is_empty(), sample.r.is_empty());
    assert_eq!(pairs(&M::empty(n)), Pairs::new());
    assert_eq!(pairs(&M::identity(n)), identity(n));
    assert_eq!(pairs(&M::full(n)), full(n));

    assert_eq!(events(a.union(b)), sample.a.union(&sample.b).copied().collect());
    assert_eq!(events(a.intersection(b)), sample.a.intersection(&sample.b).copied().collect());
    assert_eq!(events(a.difference(b)), sample.a.difference(&sample.b).copied().collect());
    assert_eq!(events(a.complement(n)), (0..n).filter(|event| !sample.a.contains(event)).collect());
    assert_eq!(a.len(), sample.a.len());
    assert_eq!(a.is_empty(), sample.a.is_empty());
    assert_eq!(a.first(), sample.a.first().copied());
    assert_eq!(a.is_subset(b), sample.a.is_subset(&sample.b));

    assert_eq!(pairs(&r.union(&s)), sample.r.union(&sample.s).copied().collect());
    assert_eq!(pairs(&r.intersection(&s)), sample.r.intersection(&sample.s).copied().collect());
    assert_eq!(pairs(&r.difference(&s)), sample.r.difference(&sample.s).copied().collect());
    assert_eq!(pairs(&r.complement(n)), full(n).difference(&sample.r).copied().collect());
    assert_eq!(r.is_subset(&s), sample.r.is_subset(&sample.s));
    let mut both = r.clone();
    both.union_with(&s);
    assert_eq!(both, r.union(&s));

    assert_eq!(pairs(&r.compose(&s)), compose(&sample.r, &sample.s));
    assert_eq!(pairs(&r.transpose()), sample.r.iter().map(|(x, y)| (*y, *x)).collect());
    let closure = plus(&sample.r);
    assert_eq!(pairs(&r.plus()), closure);
    assert_eq!(pairs(&r.star(n)), closure.union(&identity(n)).copied().collect());
    assert_eq!(pairs(&r.optional(n)), sample.r.union(&identity(n)).copied().collect());
    assert_eq!(pairs(&r.immediate()), sample.r.difference(&compose(&sample.r, &closure)).copied().collect());

    assert_eq!(
        pairs(&M::product(n, a, b)),
        sample.a.iter().flat_map(|x| sample.b.iter().map(move |y| (*x, *y))).collect()
    );
    assert_eq!(pairs(&M::identity_on(n, a)), sample.a.iter().map(|x| (*x, *x)).collect());
    assert_eq!(events(r.domain()), sample.r.iter().map(|(x, _)| *x).collect());
    assert_eq!(events(r.range()), sample.r.iter().map(|(_, y)| *y).collect());
    assert_eq!(
        pairs(&r.restrict_rows(a)),
        sample.r.iter().filter(|(x, _)| sample.a.contains(x)).copied().collect()
    );
    assert_eq!(
        pairs(&r.restrict_columns(a)),
        sample.r.iter().filter(|(_, y)| sample.a.contains(y)).copied().collect()
    );
    assert_eq!(r.is_irreflexive(), sample.r.iter().all(|(x, y)| x != y));
    assert_eq!(r.is_acyclic(), closure.iter().all(|(x, y)| x != y));

    let mut edited = r.clone();
    for (x, y) in &sample.s {
        assert_eq!(edited.contains(*x, *y), sample.r.contains(&(*x, *y)));
        edited.remove(*x, *y);
    }
    assert_eq!(edited, r.difference(&s));
    for (x, row) in (0..n).map(|x| (x, s.row(x))) {
        edited.set_row(x, row);
    }
    assert_eq!(edited, s);
}

fn assert_laws<M: Matrix>(sample: &Sample) {
    let n = sample.n;
    let (r, s): (M, M) = (relation(n, &sample.r), relation(n, &sample.s));
    assert_eq!(r.plus().plus(), r.plus());
    assert_eq!(r.star(n).compose(&r.star(n)), r.star(n));
    assert_eq!(r.compose(&s).transpose(), s.transpose().compose(&r.transpose()));
    assert_eq!(r.transpose().transpose(), r);
    assert_eq!(r.union(&s).transpose(), r.transpose().union(&s.transpose()));
    assert_eq!(r.compose(&r.union(&s)), r.compose(&r).union(&r.compose(&s)));
    assert_eq!(r.compose(&M::identity(n)), r);
    assert_eq!(M::identity(n).compose(&r), r);
    assert_eq!(r.complement(n).complement(n), r);
    let a = set::<M>(&sample.a);
    assert_eq!(M::identity_on(n, a).compose(&r), r.restrict_rows(a));
    assert_eq!(r.compose(&M::identity_on(n, a)), r.restrict_columns(a));
}

fn assert_cycles_are_cycles<M: Matrix>(sample: &Sample) {
    let r: M = relation(sample.n, &sample.r);
    match r.shortest_cycle() {
        None => assert!(r.is_acyclic()),
        Some(cycle) => {
            assert!(!r.is_acyclic());
            let shifted = cycle.iter().skip(1).chain(cycle.first());
            assert!(cycle.iter().zip(shifted).all(|(x, y)| r.contains(*x, *y)));
            // No shorter cycle exists: no event reaches itself in fewer steps.
            let mut power = r.clone();
            for _ in 1..cycle.len() {
                assert!(power.is_irreflexive());
                power = power.compose(&r);
            }
        }
    }
}

macro_rules! matrix_tests {
    ($($module:ident: $matrix:ty, $cases:literal;)*) => {
        $(
            mod $module {
                use super::*;

                proptest! {
                    #![proptest_config(ProptestConfig { cases: $cases, failure_persistence: None, ..ProptestConfig::default() })]

                    #[test]
                    fn as_sets(sample in samples(<$matrix>::CAPACITY)) {
                        assert_agrees_with_sets::<$matrix>(&sample);
                    }

                    #[test]
                    fn laws(sample in samples(<$matrix>::CAPACITY)) {
                        assert_laws::<$matrix>(&sample);
                    }

                    #[test]
                    fn cycles(sample in samples(<$matrix>::CAPACITY)) {
                        assert_cycles_are_cycles::<$matrix>(&sample);
                    }
                }
            }
        )*
    };
}

matrix_tests! {
    of_16: Matrix16, 256;
    of_32: Matrix32, 128;
    of_64: Matrix64, 64;
    of_256: Matrix256, 24;
}

#[test]
fn numbers_past_the_capacity_are_never_members() {
    fn check<M: Matrix>() {
        let mut matrix = M::full(M::CAPACITY);
        assert_eq!(matrix.len(), M::CAPACITY * M::CAPACITY);
        matrix.insert(M::CAPACITY, 0);
        matrix.insert(0, M::CAPACITY);
        matrix.remove(M::CAPACITY, M::CAPACITY);
        assert_eq!(matrix, M::full(M::CAPACITY));
        assert!(!matrix.contains(M::CAPACITY, 0) && !matrix.contains(0, M::CAPACITY));
        assert!(matrix.row(M::CAPACITY).is_empty());
    }
    check::<Matrix16>();
    check::<Matrix32>();
    check::<Matrix64>();
    check::<Matrix256>();
}

#[test]
fn a_shortest_path_names_its_steps() {
    let r = Matrix16::from_pairs(5, [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 0)]);
    assert_eq!(r.shortest_path(0, 4).unwrap(), [0, 3, 4]);
    assert_eq!(r.shortest_path(0, 0).unwrap(), [0, 3, 4, 0]);
    assert_eq!(Matrix16::from_pairs(5, [(0, 1)]).shortest_path(1, 0), None);
}
