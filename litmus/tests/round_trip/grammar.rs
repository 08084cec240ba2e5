//! Random texts of a grammar, which a data file contains.
//!
//! A line `name:` begins a rule; each line below it, indented by four spaces, is an alternative, in which `\n` is the end of a
//! line and `ε` nothing. In back quotes is the name of a rule: `name?` is optional, `name*4` repeated at most four times, `name!`
//! expanded in the same way everywhere. Words after it replace `$1`, `$2` and so on in the rule. Lines between `[[[` and `]]]`
//! are the columns of a table, separated by lines with `|`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

/// The depth from which on a rule has its first alternative, which must end.
const MAX_DEPTH: usize = 14;

/// The alternatives of each rule.
pub struct Grammar<'g>(BTreeMap<&'g str, Vec<String>>);

impl<'g> Grammar<'g> {
    pub fn new(text: &'g str) -> Grammar<'g> {
        let mut rules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut name = "";
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            match line.strip_prefix("    ") {
                Some("ε") => rules.entry(name).or_default().push(String::new()),
                Some(alternative) => rules.entry(name).or_default().push(alternative.replace("\\n", "\n")),
                None => name = line.strip_suffix(':').unwrap(),
            }
        }
        Grammar(rules)
    }

    /// Returns the text that `choices` derive from a rule; after the last choice, every choice is the first option.
    pub fn derive(&self, rule: &str, choices: &[u16]) -> String {
        let mut derivation = Derivation { grammar: self, choices: choices.iter(), common: BTreeMap::new() };
        lay_out_columns(&derivation.expand(rule, MAX_DEPTH))
    }
}

struct Derivation<'d> {
    grammar: &'d Grammar<'d>,
    choices: std::slice::Iter<'d, u16>,
    /// The expansions of references that are equal everywhere.
    common: BTreeMap<String, String>,
}

impl Derivation<'_> {
    fn choose_below(&mut self, count: usize) -> usize {
        usize::from(self.choices.next().copied().unwrap_or(0)) % count
    }

    /// Expands a reference: a rule with its arguments.
    fn expand(&mut self, reference: &str, depth: usize) -> String {
        let mut words = reference.split(' ');
        let name = words.next().unwrap_or_default();
        if let Some(rule) = name.strip_suffix('!') {
            if !self.common.contains_key(rule) {
                let expansion = self.expand(rule, depth);
                self.common.insert(rule.to_owned(), expansion);
            }
            return self.common[rule].clone();
        }
        let (rule, count) = match name.split_once(['?', '*']) {
            Some((rule, "")) => (rule, self.choose_below(2)),
            Some((rule, most)) => (rule, self.choose_below(most.parse::<usize>().unwrap() + 1)),
            None => (name, 1),
        };
        let alternatives = self.grammar.0.get(rule).unwrap_or_else(|| panic!("no rule `{rule}`"));
        let arguments: Vec<&str> = words.collect();
        let mut text = String::new();
        for _ in 0..count {
            let chosen = if depth == 0 { 0 } else { self.choose_below(alternatives.len()) };
            let mut alternative = alternatives[chosen].clone();
            for number in 1..4 {
                let argument = arguments.get(number - 1).copied().unwrap_or_default();
                alternative = alternative.replace(&format!("${number}"), argument);
            }
            for (index, part) in alternative.split('`').enumerate() {
                text += &if index % 2 == 0 {
                    part.to_owned()
                } else {
                    self.expand(part, depth.saturating_sub(1))
                };
            }
        }
        text
    }
}

/// Replaces columns by rows of a table.
fn lay_out_columns(text: &str) -> String {
    let Some((head, (columns, tail))) =
        text.split_once("[[[\n").and_then(|(head, rest)| Some((head, rest.split_once("]]]\n")?)))
    else {
        return text.to_owned();
    };
    let columns: Vec<Vec<&str>> = columns.split("|\n").map(|column| column.lines().collect()).collect();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(2);
    let row = |row: usize| {
        let cells = columns.iter().map(|column| column.get(row).copied().unwrap_or_default());
        cells.collect::<Vec<_>>().join(" | ") + " ;\n"
    };
    format!("{head}{}{tail}", (0..rows).map(row).collect::<String>())
}
