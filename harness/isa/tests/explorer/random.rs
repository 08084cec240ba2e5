//! Malformed text: no panics, and no line is lost silently.

use isa::explore::explore_with_limit;
use isa::text::MachineTextError;
use isa::{FactTable, Profile, parse};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::sample::{FAMILIES, PRINTED, question, samples};

/// Counts the lines with contents.
fn count_meaningful_lines(text: &str) -> usize {
    let code = |line: &&str| {
        let line = line.split(';').next().unwrap().split("//").next().unwrap().trim();
        !line.is_empty() && !line.starts_with("(then repeated")
    };
    text.lines().filter(code).count()
}

fn mutate_text(text: &str, edits: &[(u16, u8, u16)], other: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (line_selector, change_kind, detail) in edits {
        if lines.is_empty() {
            break;
        }
        let at = usize::from(*line_selector) % lines.len();
        let detail = usize::from(*detail);
        match change_kind % 7 {
            0 => drop(lines.remove(at)),
            1 => lines.insert(
                at,
                other.lines().nth(detail % other.lines().count().max(1)).unwrap_or("").to_owned(),
            ),
            2 => {
                let with = detail % lines.len();
                lines.swap(at, with);
            }
            3 => {
                let mut bytes: Vec<char> = lines[at].chars().collect();
                if !bytes.is_empty() {
                    let at = detail % bytes.len();
                    bytes[at] = ['0', '9', 'v', 's', '[', ':', ',', 'é', ' ', '-'][detail / 7 % 10];
                }
                lines[at] = bytes.into_iter().collect();
            }
            4 => {
                let cut = detail % (lines[at].chars().count() + 1);
                lines[at] = lines[at].chars().take(cut).collect();
            }
            5 => {
                let copy = lines[at].clone();
                lines[at].push_str(&copy);
            }
            _ => lines[at] = lines[at].replace("0x", "0xffffffff").replace("s[", "s[9"),
        }
    }
    lines.join("\n")
}

#[test]
fn mutated_text() {
    let facts = FactTable::shipped().unwrap();
    let all: Vec<_> = FAMILIES.iter().map(|family| samples(family)).collect();
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let edits = proptest::collection::vec((any::<u16>(), any::<u8>(), any::<u16>()), 1..6);
    runner
        .run(&(0..FAMILIES.len(), any::<u16>(), any::<u16>(), edits), |(family, which, with, edits)| {
            let samples = &all[family];
            let sample = &samples[usize::from(which) % samples.len()];
            let other = &samples[usize::from(with) % samples.len()];
            let texts: Vec<String> =
                sample.texts.iter().map(|text| mutate_text(text, &edits, &other.texts[0])).collect();
            let mut read = Vec::new();
            for text in &texts {
                match parse(text) {
                    Ok(program) => {
                        prop_assert_eq!(
                            program.instructions.len() + program.labels.len(),
                            count_meaningful_lines(text)
                        );
                        read.push(program);
                    }
                    Err(
                        MachineTextError::NotAnInstruction { line, .. }
                        | MachineTextError::DuplicateLabel { line, .. },
                    ) => {
                        prop_assert!(line >= 1 && line as usize <= text.lines().count());
                    }
                    Err(MachineTextError::Empty | MachineTextError::NotDisassembled(_)) => {}
                }
            }
            if read.len() == texts.len() {
                // Any verdict is acceptable.
                let verdict = explore_with_limit(
                    &question(FAMILIES[family], sample, &read),
                    Profile::Documented,
                    &facts,
                    20_000,
                );
                prop_assert!(!verdict.word().is_empty());
            }
            Ok(())
        })
        .unwrap();
}

/// Lines in ACO's format may have no instruction, so the test only detects panics.
#[test]
fn mutated_printed_text() {
    let all = samples(PRINTED[0]);
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[8; 32]));
    let edits = proptest::collection::vec((any::<u16>(), any::<u8>(), any::<u16>()), 1..6);
    runner
        .run(&(any::<u16>(), any::<u16>(), edits), |(which, with, edits)| {
            let sample = &all[usize::from(which) % all.len()];
            let other = &all[usize::from(with) % all.len()].texts[0];
            let read: Result<Vec<_>, _> =
                sample.texts.iter().map(|text| parse(&mutate_text(text, &edits, other))).collect();
            if let Ok(read) = read {
                let facts = FactTable::shipped().unwrap();
                let question = question(PRINTED[0], sample, &read);
                let verdict = explore_with_limit(&question, Profile::Paranoid, &facts, 20_000);
                prop_assert!(!verdict.word().is_empty());
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn arbitrary_text() {
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]));
    runner
        .run(&"[ -~\\n\\té]{0,200}", |text| {
            let _ = parse(&text);
            Ok(())
        })
        .unwrap();
}

#[test]
fn text_that_was_not_disassembled() {
    for text in [
        "Shader disassembly is not supported in the current configuration, falling back to print_program.\n",
        "BB0:\n\t(invalid instruction) ; 12345678\n",
    ] {
        assert!(matches!(parse(text), Err(MachineTextError::NotDisassembled(_))), "{text}");
    }
    assert_eq!(parse(""), Err(MachineTextError::Empty));
    assert!(matches!(parse("s_endpgm\nThe end."), Err(MachineTextError::NotAnInstruction { line: 2, .. })));
}
