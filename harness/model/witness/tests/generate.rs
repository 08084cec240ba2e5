//! The random programs are deterministic, and the witness supports them.

use std::collections::BTreeMap;

use witness::generate::{Corner, ProgramFamily, generate_program};
use witness::{Races, SearchBounds, TextProfile, UnsupportedTest, judge};

#[test]
fn a_seed_determines_a_program() {
    for seed in 0..200 {
        assert_eq!(generate_program(seed), generate_program(seed));
    }
}

/// Families and answers are mixed: some programs race and some do not.
#[test]
fn programs_are_read_and_answered() {
    let mut free: BTreeMap<ProgramFamily, (u32, u32)> = BTreeMap::new();
    let mut endless = 0;
    for seed in 0..2000 {
        let program = generate_program(seed);
        let test = litmus::parse(&program.text, "random.litmus")
            .unwrap_or_else(|errors| panic!("{seed}: {errors:?}\n{}", program.text));
        let options = SearchBounds { loop_bound: program.bound, ..SearchBounds::default() };
        let answer = match judge(&test, TextProfile::LATEST, &options) {
            Ok(answer) => answer,
            // A loop whose condition does not change.
            Err(UnsupportedTest::Endless) => {
                endless += 1;
                continue;
            }
            Err(refusal) => panic!("{seed}: {refusal}\n{}", program.text),
        };
        let entry = free.entry(program.family).or_default();
        entry.1 += 1;
        entry.0 += u32::from(answer.races == Races::Never);
    }
    println!("{free:?}, endless: {endless}");
    assert!(endless < 40, "{endless} programs do not end");
    for (family, (free, all)) in free {
        assert!(free * 20 > all && free < all, "{family:?}: {free} of {all} are free of races");
    }
}

/// For each corner case, at least a fixed percentage of programs change their answer without the feature.
#[test]
fn each_corner_feature_affects_answers() {
    const PROGRAMS: u64 = 400;
    for corner in Corner::ALL {
        let (mut decided, mut all, mut free) = (0, 0, 0);
        for seed in 0..PROGRAMS {
            let program = corner.generate_program(seed);
            let test = litmus::parse(&program.text, "corner.litmus")
                .unwrap_or_else(|errors| panic!("{seed}: {errors:?}\n{}", program.text));
            let options = SearchBounds { loop_bound: program.bound, ..SearchBounds::default() };
            let answer = |test: &litmus::Test| match judge(test, TextProfile::LATEST, &options) {
                Ok(answer) => Some((answer.outcomes, answer.races)),
                Err(UnsupportedTest::Endless) => None,
                Err(refusal) => panic!("{seed}: {refusal}\n{}", program.text),
            };
            let Some(with) = answer(&test) else { continue };
            all += 1;
            free += u64::from(with.1 == Races::Never);
            decided += u64::from(Some(with) != answer(&corner.remove_feature(&test)));
        }
        println!("{corner:?}: decisive in {decided} of {all}, free of races: {free}");
        assert!(all * 20 > PROGRAMS * 19, "{corner:?}: {all} of {PROGRAMS} have an answer");
        assert!(decided * 100 >= all * 10, "{corner:?}: decisive in {decided} of {all}");
        assert!(free * 10 > all && free < all, "{corner:?}: {free} of {all} are free of races");
    }
}
