//! Random tests: threads with and without common workgroups, forward jumps, and barriers with any semantics.

use litmus::Test;
use proptest::prelude::*;
use witness::generate::grammar::Grammar;

/// Returns the tests of `random.grammar`.
#[expect(clippy::panic, reason = "a test fails by panicking")]
pub fn test() -> impl Strategy<Value = Test> {
    let choices = prop::collection::vec(any::<u16>(), 250);
    choices.prop_map(|choices| {
        let text = Grammar::new(include_str!("random.grammar")).derive("test", &choices);
        litmus::parse(&text, "random").unwrap_or_else(|errors| panic!("{text}\n{errors}"))
    })
}
