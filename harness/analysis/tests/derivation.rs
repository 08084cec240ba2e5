//! Random texts of a grammar, for tests of several crates.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeMap;

/// Marsaglia's xorshift64.
pub struct Random(u64);

impl Random {
    /// Returns a generator for a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }
}

/// Derives texts from the rules of a grammar; `kernels.grammar` describes their form.
pub struct Derivation {
    random: Random,
    rules: BTreeMap<&'static str, Vec<&'static str>>,
    /// The last number of an alternative.
    number: u32,
}

impl Derivation {
    pub fn new(grammar: &'static str, random: Random) -> Derivation {
        let mut rules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut name = "";
        for line in grammar.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            match line.strip_prefix("    ") {
                Some(alternative) => {
                    rules.entry(name).or_default().push(if alternative == "ε" { "" } else { alternative });
                }
                None => name = line.trim_end_matches(':'),
            }
        }
        Derivation { random, rules, number: 100 }
    }

    /// Expands a reference: a rule with its arguments.
    fn expand(&mut self, reference: &str) -> String {
        let words: Vec<&str> = reference.split(' ').collect();
        let (rule, count) = match words[0].split_once('*') {
            Some((rule, most)) => (rule, self.random.below(most.parse::<usize>().unwrap() + 1)),
            None => (words[0], 1),
        };
        let mut text = String::new();
        for _ in 0..count {
            let alternatives = self.rules.get(rule).unwrap_or_else(|| panic!("no rule `{rule}`"));
            let chosen = alternatives[self.random.below(alternatives.len())];
            self.number += 1;
            let mut alternative = chosen.replace("\\n", "\n").replace('#', &self.number.to_string());
            for (index, argument) in words.iter().enumerate().skip(1) {
                alternative = alternative.replace(&format!("${index}"), argument);
            }
            for (index, part) in alternative.split('`').enumerate() {
                text += &if index % 2 == 0 { part.to_owned() } else { self.expand(part) };
            }
        }
        text
    }

    /// Returns a text with the parts between `{{` and `}}` at its end.
    pub fn expand_kernel(&mut self, reference: &str) -> String {
        let mut text = self.expand(reference);
        while let Some(end) = text.find("}}") {
            let start = text[..end].rfind("{{").unwrap();
            let function = text[start + 2..end].to_owned();
            text.replace_range(start..end + 2, "");
            text += &function;
        }
        text
    }
}
