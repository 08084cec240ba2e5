//! Mutation test of the explorer: one instruction is removed from correct code. Every undetected edit is
//! classified.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use codegen::mutation_test::{self, EditVerdict};
use isa::edit::EditKind;
use isa::survivor::SurvivorClass;
use isa::{FactTable, Profile};

use crate::sample::{FAMILIES, is_conformance, parsed, question, samples};

#[test]
fn removed_instructions_are_detected() {
    let facts = FactTable::shipped().unwrap();
    let mut table = String::new();
    let mut otherwise = BTreeSet::new();
    for family in FAMILIES {
        let mut counts: BTreeMap<EditKind, BTreeMap<String, u32>> = BTreeMap::new();
        for sample in samples(family).iter().filter(|sample| sample.is_merged() && is_conformance(sample)) {
            let original = question(family, sample, &parsed(sample));
            for edited in
                mutation_test::mutate_code(&original, Profile::Documented, &facts).unwrap_or_default()
            {
                let what = format!("{family} {} {}: {}", sample.name, edited.kind, edited.text);
                // Each removed barrier of a test is detected.
                if edited.kind == EditKind::Barrier {
                    assert!(
                        matches!(edited.verdict, EditVerdict::Reachable | EditVerdict::KernelBarrier),
                        "{what} {}",
                        edited.verdict
                    );
                }
                assert_ne!(edited.verdict, EditVerdict::Unexplained, "{what}");
                if edited.verdict == EditVerdict::Survives(SurvivorClass::OtherReason) {
                    otherwise.insert(what);
                }
                *counts.entry(edited.kind).or_default().entry(edited.verdict.to_string()).or_default() += 1;
            }
        }
        for (kind, fates) in counts {
            let all: u32 = fates.values().sum();
            let fates: Vec<String> = fates.iter().map(|(fate, count)| format!("{fate} {count}")).collect();
            writeln!(table, "{family} {kind}: {} of {all}", fates.join(", ")).unwrap();
        }
    }
    insta::assert_snapshot!("edits", table);
    let otherwise: Vec<String> = otherwise.into_iter().collect();
    insta::assert_snapshot!("survivors", otherwise.join("\n"));
}
