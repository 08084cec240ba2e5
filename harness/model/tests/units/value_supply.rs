//! Values that the writes of other threads supply.

use litmus::{Test, ThreadId};

use model::internals::{PathChoice, ThreadPath, ValueSupply, enumerate_paths};

const WAIT: &str = "ld.atom.acq.dv.sc0.semsc0.semvis r0, ";

/// Two threads that wait, the second for a flag of the first, and one that sets the first flag.
fn two_waiting_threads(awaited: u32) -> (ValueSupply, Vec<Vec<ThreadPath>>) {
    let text = format!(
        "VULKAN chain\n{{ f = 0; g = 0; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 ;\n\
         st.atom.dv.sc0 f, 1 | LC00: | LC00: ;\n\
         st.atom.dv.sc0 f, 2 | {WAIT}f | {WAIT}g ;\n\
         | blt r0, {awaited}, LC00 | bne r0, 1, LC00 ;\n\
         | st.atom.dv.sc0 g, 1 | ;\n"
    );
    let test: Test = litmus::parse(&text, "chain").unwrap();
    let paths: Vec<Vec<ThreadPath>> =
        (0..3).map(|thread| enumerate_paths(&test, ThreadId(thread), 1, true).unwrap()).collect();
    (ValueSupply::new(&test, &paths, true), paths)
}

/// The paths on which each thread has left its loop, or not.
fn choose_paths(paths: &[Vec<ThreadPath>], has_left: [bool; 3]) -> Vec<PathChoice> {
    let path = |(paths, left): (&Vec<ThreadPath>, &bool)| {
        PathChoice::Path(paths.iter().position(|path| path.terminated == *left).unwrap())
    };
    paths.iter().zip(&has_left).map(path).collect()
}

#[test]
fn value_that_no_path_writes_has_no_source() {
    let (supply, paths) = two_waiting_threads(1);
    assert!(supply.has_sources(&choose_paths(&paths, [true, true, true])));
    assert!(supply.has_sources(&choose_paths(&paths, [true, true, false])));
    assert!(!supply.has_sources(&choose_paths(&paths, [true, false, true])));
}

#[test]
fn thread_continues_if_every_last_value_leaves_its_loop() {
    let (of_one, paths) = two_waiting_threads(1);
    assert!(of_one.can_continue(&choose_paths(&paths, [true, false, false])));
    assert!(of_one.can_continue(&choose_paths(&paths, [true, true, false])));
    assert!(!of_one.can_continue(&choose_paths(&paths, [true, true, true])));
    // The last value may be 1, which does not leave the loop.
    let (of_two, paths) = two_waiting_threads(2);
    assert!(!of_two.can_continue(&choose_paths(&paths, [true, false, false])));
}
