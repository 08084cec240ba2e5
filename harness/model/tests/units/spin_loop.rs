//! Checks that the random spin-loop tests have shapes that the reduction accepts.

use litmus::ThreadId;
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::common::waiting::waiting_tests;

use model::internals::{SpinLoopReduction, enumerate_paths};

#[test]
fn generated_spin_tests_have_reducible_threads() {
    let config = Config { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let mut waits = 0;
    for _ in 0..1_000 {
        let test = proptest::strategy::ValueTree::current(&waiting_tests().new_tree(&mut runner).unwrap());
        let all =
            (0..test.threads.len()).map(|thread| enumerate_paths(&test, ThreadId(thread as u16), 1, true));
        let all: Vec<_> = all.collect::<Result<_, _>>().unwrap();
        waits += usize::from(SpinLoopReduction::new(&test, &all).is_some());
    }
    assert!((250..700).contains(&waits), "{waits} of 1000");
}
