//! Random race-free programs only have allowed outcomes.

use litmus::Race;
use sim::{Fault, SimDevice};
use witness::generate::SplitMix64;
use witness::generate::grammar::Grammar;

use crate::common::{case_count, complete_prediction, disallowed_outcomes, run};

/// A regression found in 20,000 of the programs below: an acquire of two words kept stale prefetched values.
#[test]
fn an_acquire_of_two_words_invalidates() {
    let device = SimDevice::new(Fault::None);
    for flag in ["buffer u64", "buffer f64", "buffer u32"] {
        for end in ["st.atom.wg.sc0 x, 1", "rmw.atom.wg.sc0.add r0, x, 1"] {
            let text = format!(
                "VULKAN MP\n{{ x = 0; {flag} y = 0; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 1, wg 0, qf 0 ;\n\
                ld.atom.acq.wg.sc0.semsc0 r0, y | {end} ;\n\
                ld.atom.wg.sc0 r1, x | st.atom.rel.wg.sc0.semsc0 y, 4 ;\nexists (P0:r0 == 4 /\\ P0:r1 == 0)\n"
            );
            let test = litmus::parse(&text, "MP").unwrap();
            let seen = run(&device, &test, 100_000, 3).unwrap().unwrap();
            let wrong = disallowed_outcomes(&test, &complete_prediction(&test).unwrap(), &seen);
            assert!(wrong.is_empty(), "{text}{wrong:#?}");
        }
    }
}

#[test]
fn race_free_programs_show_no_forbidden_outcome() {
    compare_with_model("program", case_count(100));
}

#[test]
fn race_free_split_barrier_programs_show_no_forbidden_outcome() {
    compare_with_model("split", case_count(100));
}

/// Compares the outcomes of programs by a rule of `random.grammar` with the model.
#[expect(clippy::panic, reason = "a test fails by panicking")]
fn compare_with_model(rule: &str, wanted: u64) {
    let device = SimDevice::new(Fault::None);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    let mut random = SplitMix64(seed);
    let grammar = Grammar::new(include_str!("random.grammar"));
    let (mut ran, mut tried, mut total, mut outcomes, mut possible) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    while ran < wanted && tried < wanted * 20 {
        tried += 1;
        let text = grammar.derive_with(rule, |count| random.below(count));
        let test = match litmus::parse(&text, "R") {
            Ok(test) => test,
            Err(errors) => panic!("{text}\n{errors}"),
        };
        let Some(prediction) = complete_prediction(&test).filter(|prediction| prediction.race == Race::Free)
        else {
            continue;
        };
        let Some(seen) = run(&device, &test, 2_000, tried) else { continue };
        let seen = seen.unwrap_or_else(|error| panic!("{text}\n{error}"));
        ran += 1;
        total += seen.accounted_instances();
        outcomes += seen.histogram.counts.len();
        possible += prediction.outcomes.values().filter(|says| says.allowed).count();
        let bad = disallowed_outcomes(&test, &prediction, &seen);
        if !bad.is_empty() {
            wrong.push(format!("{text}\n{bad:#?}"));
        }
    }
    println!(
        "{ran} race-free of {tried} programs, {total} instances, {outcomes} of {possible} outcomes shown"
    );
    assert!(ran >= wanted, "{ran} of {tried} are race-free");
    assert!(wrong.is_empty(), "{} of {ran}:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    assert!(outcomes * 2 > possible, "{outcomes} of {possible}");
}
