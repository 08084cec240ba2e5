//! What devices showed of the mutants of a test: whether they could have shown of it what it forbids.

use std::collections::BTreeMap;

use crate::show;
use crate::wire::{MutantSeen, RunLine, VerdictWord};

/// Verdicts by device and test.
#[derive(Debug, Default)]
pub struct Mutants<'a>(BTreeMap<(&'a str, &'a str), &'a RunLine>);

impl<'a> Mutants<'a> {
    /// Of these verdicts.
    pub fn of(lines: impl IntoIterator<Item = &'a RunLine>) -> Mutants<'a> {
        Mutants(lines.into_iter().map(|line| ((line.device.as_str(), line.id.as_str()), line)).collect())
    }

    /// How often the device of a verdict that conforms showed, of each mutant that it ran, what the test forbids.
    pub fn seen(&self, line: &RunLine) -> Vec<MutantSeen> {
        if line.verdict != VerdictWord::Conforms {
            return Vec::new();
        }
        let ran = line.mutants.iter().filter_map(|id| self.0.get(&(line.device.as_str(), id.as_str())));
        ran.filter(|mutant| mutant.verdict != VerdictWord::Skipped)
            .map(|mutant| MutantSeen {
                id: mutant.id.clone(),
                seen: mutant
                    .outcomes
                    .iter()
                    .filter(|outcome| outcome.witness == Some(true))
                    .fold(0, |sum, outcome| sum.saturating_add(outcome.count)),
                instances: mutant.instances,
            })
            .collect()
    }

    /// The same in a few words; empty where there is nothing to say.
    pub fn words(&self, line: &RunLine) -> String {
        let all = self.seen(line);
        match all.iter().filter(|mutant| mutant.seen > 0).count() {
            _ if all.is_empty() => String::new(),
            0 => "nothing seen: weak evidence".to_owned(),
            seen => format!("{seen} of {} mutants seen", all.len()),
        }
    }

    /// A line for each mutant: how often.
    pub fn how_often(&self, line: &RunLine) -> Vec<String> {
        let number = crate::write::number::count;
        let told = |mutant: MutantSeen| {
            format!("{}: {} of {}", show::line(&mutant.id), number(mutant.seen), number(mutant.instances))
        };
        self.seen(line).into_iter().map(told).collect()
    }
}
