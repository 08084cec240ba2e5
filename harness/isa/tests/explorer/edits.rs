//! Trust: one instruction taken away from code that is right, and whether the explorer notices. Every survivor is
//! classified.

use std::collections::BTreeMap;
use std::fmt::Write;

use isa::edit::{Kind, edits};
use isa::{Facts, Family, Profile, Verdict, explore};

use crate::sample::{FAMILIES, parsed, question, samples};

#[test]
fn one_instruction_less() {
    let facts = Facts::shipped().unwrap();
    let mut table = String::new();
    for family in FAMILIES {
        let generation = family.parse::<Family>().unwrap().generation();
        let mut counts: BTreeMap<Kind, BTreeMap<String, u32>> = BTreeMap::new();
        for sample in samples(family).iter().filter(|sample| sample.is_merged()) {
            let texts = parsed(sample);
            if !matches!(explore(&question(family, sample, &texts), Profile::Documented, &facts), Verdict::Unreachable(_)) {
                continue;
            }
            for (number, text) in texts.iter().enumerate() {
                for edit in edits(text, generation) {
                    let mut texts = texts.clone();
                    texts[number] = edit.program;
                    let question = question(family, sample, &texts);
                    let verdict = explore(&question, Profile::Documented, &facts);
                    let class = match &verdict {
                        Verdict::Reachable(_) => "reachable".to_owned(),
                        Verdict::Hazard(_) => "hazard".to_owned(),
                        Verdict::Unsupported(what) => format!("unsupported: {}", what.what),
                        Verdict::Unreachable(_) => {
                            if std::env::var_os("SURVIVORS").is_some() {
                                println!("{family} {} {} line {}", sample.name, edit.kind, edit.line);
                            }
                            "survives".to_owned()
                        }
                    };
                    *counts.entry(edit.kind).or_default().entry(class).or_default() += 1;
                }
            }
        }
        for (kind, classes) in counts {
            let all: u32 = classes.values().sum();
            let classes: Vec<String> = classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
            writeln!(table, "{family} {kind}: {} of {all}", classes.join(", ")).unwrap();
        }
    }
    insta::assert_snapshot!("edits", table);
}
