//! Generators of random litmus tests, small enough for the naive enumerator.

use litmus::{Instruction, InstructionKind, Test};
use proptest::prelude::*;
use witness::generate::grammar::Grammar;

/// Random programs by a rule of a grammar; those that the parser refuses are not drawn.
pub fn programs(rule: &'static str) -> impl Strategy<Value = Test> {
    texts(rule).prop_filter_map("the parser accepts the text", |text| litmus::parse(&text, "random").ok())
}

/// Random texts by a rule of `waiting.grammar` or `random.grammar`.
pub fn texts(rule: &'static str) -> impl Strategy<Value = String> {
    const GRAMMAR: &str = concat!(include_str!("waiting.grammar"), include_str!("random.grammar"));
    let choices = proptest::collection::vec(any::<u16>(), 150);
    choices.prop_map(move |choices| Grammar::new(GRAMMAR).derive(rule, &choices))
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
