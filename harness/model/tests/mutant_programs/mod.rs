//! Random programs that may kill mutants of a model.

use litmus::Test;
use model::Model;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};

use witness::generate::grammar::Grammar;
use witness::generate::{SplitMix64, generate_classes_program, generate_program};

use crate::{common, random};

/// Returns random programs in the dialect of a model, determined by the first number: chains of availability
/// and visibility, chains through hosts and memory dependencies, accesses of parts and of vectors,
/// cooperative accesses, calls and sections.
pub fn generate_programs(model: &Model, from: u64, count: u64) -> Vec<Test> {
    if model.supports_dialect(litmus::Dialect::Hsa) {
        return draw_values(&random::text(2..=4, 3), from, count)
            .into_iter()
            .filter_map(|text| litmus::parse(&text, "random").ok())
            .collect();
    }
    let of_text = |text: String| litmus::parse(&text, "random").ok();
    let eighth = count.div_ceil(16);
    let mut programs: Vec<Test> =
        (from..from + 8 * eighth).filter_map(|seed| of_text(generate_program(seed).text)).collect();
    let grammar = Grammar::new(include_str!("host-chains.grammar"));
    let mut random = SplitMix64(from ^ 0x5EED);
    let chains = (0..3 * eighth).map(|_| grammar.derive_with("host-chain", |count| random.below(count)));
    programs.extend(chains.filter_map(of_text));
    let classes = |seed| of_text(generate_classes_program(seed).text);
    programs.extend((from..from + eighth).filter_map(classes));
    for rule in ["plain", "hosts", "calls", "sizes", "cooperative"] {
        programs.extend(draw_values(&common::programs(rule), from, eighth));
    }
    programs
}

fn draw_values<S: Strategy>(strategy: &S, from: u64, count: u64) -> Vec<S::Value> {
    let config = Config { rng_seed: RngSeed::Fixed(from), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    (0..count).filter_map(|_| strategy.new_tree(&mut runner).ok()).map(|tree| tree.current()).collect()
}
