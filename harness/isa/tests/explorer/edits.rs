//! Trust: one instruction taken away from code that is right, and whether the explorer notices. Every survivor is
//! classified.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use isa::edit::{Kind, edits};
use isa::opcode::{Opcode, Path};
use isa::survivor::{self, Class};
use isa::text::Instruction;
use isa::{Facts, Family, Profile, Program, Verdict, explore};

use crate::sample::{FAMILIES, parsed, question, samples};

fn is_barrier(instruction: &Instruction) -> bool {
    matches!(instruction.opcode, Opcode::Barrier | Opcode::BarrierWait)
}

fn uses_lds(text: &Program) -> bool {
    let lds = |i: &Instruction| matches!(&i.opcode, Opcode::Memory(memory) if memory.path == Path::Lds);
    text.instructions.iter().any(lds)
}

#[test]
fn one_instruction_less() {
    let facts = Facts::shipped().unwrap();
    let mut table = String::new();
    let mut otherwise = BTreeSet::new();
    for family in FAMILIES {
        let generation = family.parse::<Family>().unwrap().generation();
        let mut counts: BTreeMap<Kind, BTreeMap<String, u32>> = BTreeMap::new();
        for sample in samples(family).iter().filter(|sample| sample.is_merged()) {
            let texts = parsed(sample);
            if !matches!(
                explore(&question(family, sample, &texts), Profile::Documented, &facts),
                Verdict::Unreachable(_)
            ) {
                continue;
            }
            let whole = question(family, sample, &texts);
            for (number, text) in texts.iter().enumerate() {
                let barriers: Vec<u32> =
                    text.instructions.iter().filter(|i| is_barrier(i)).map(|i| i.line).collect();
                for edit in edits(text, generation) {
                    let mut texts = texts.clone();
                    texts[number] = edit.program;
                    let question = question(family, sample, &texts);
                    let verdict = explore(&question, Profile::Documented, &facts);
                    // Around workgroup memory the kernel has barriers of its own, first and last: after its initialization,
                    // and before what reads final values. All others are the test's, and each one missing is found.
                    let own = barriers.len() > 1
                        && uses_lds(text)
                        && [barriers.first(), barriers.last()].contains(&Some(&edit.line));
                    if edit.kind == Kind::Barrier && !own {
                        assert!(
                            matches!(verdict, Verdict::Reachable(_)),
                            "{family} {} {}",
                            sample.name,
                            edit.line
                        );
                    }
                    let class = match &verdict {
                        Verdict::Reachable(_) => "reachable".to_owned(),
                        Verdict::Hazard(_) => "hazard".to_owned(),
                        Verdict::Unsupported(what) => format!("unsupported: {}", what.what),
                        Verdict::Unreachable(_) => {
                            let orders =
                                survivor::orders(&whole, number, edit.line, Profile::Documented, &facts)
                                    .unwrap();
                            let class = match edit.kind {
                                Kind::StoreBit => Class::OwnLine,
                                Kind::LoadBit | Kind::LoadArrayBit => survivor::class_of_load_bit(&orders),
                                _ => survivor::class_of_wait(&orders),
                            };
                            if class == Class::Otherwise {
                                let line = text.instructions.iter().find(|i| i.line == edit.line).unwrap();
                                otherwise
                                    .insert(format!("{family} {} {}: {}", sample.name, edit.kind, line.text));
                            }
                            format!("survives: {class}")
                        }
                    };
                    *counts.entry(edit.kind).or_default().entry(class).or_default() += 1;
                }
            }
        }
        for (kind, classes) in counts {
            let all: u32 = classes.values().sum();
            let classes: Vec<String> =
                classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
            writeln!(table, "{family} {kind}: {} of {all}", classes.join(", ")).unwrap();
        }
    }
    insta::assert_snapshot!("edits", table);
    let otherwise: Vec<String> = otherwise.into_iter().collect();
    insta::assert_snapshot!("survivors", otherwise.join("\n"));
}
