//! Random texts of a grammar, which a data file contains.
//!
//! A line `name:` begins a rule; each line below it, indented by four spaces, is an alternative, in which `\n` is the end of a
//! line and `ε` nothing; `×3 ` before it makes it three times as frequent. In back quotes is the name of a rule: `name?` is
//! optional, with `name?30` in 30 of 100 cases, `name*4` repeated at most four times, `name!` expanded in the same way
//! everywhere; `{name}` in a reference is the text of `name!`, and `name~kind` is
//! the rule `name-kind` if it exists, otherwise `name`. Words after it replace `$1`, `$2` and so on in the rule. A `#` after
//! a letter is a number that differs in each alternative. Lines between `[[[` and `]]]` are the columns of a table, separated by lines with `|`; `;` ends a line too.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

/// The depth from which on a rule has its first alternative, which must end.
const MAX_DEPTH: usize = 14;

const MAX_ARGUMENTS: usize = 7;

/// The alternatives of each rule.
pub struct Grammar<'g>(BTreeMap<&'g str, Vec<String>>);

impl<'g> Grammar<'g> {
    pub fn new(text: &'g str) -> Grammar<'g> {
        let mut rules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut name = "";
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let Some(alternative) = line.strip_prefix("    ") else {
                name = line.strip_suffix(':').unwrap();
                continue;
            };
            let weighted = alternative.strip_prefix('×').and_then(|rest| rest.split_once(' '));
            let (weight, text) = weighted.unwrap_or(("1", alternative));
            let text = if text == "ε" { String::new() } else { text.replace("\\n", "\n") };
            let alternatives = rules.entry(name).or_default();
            alternatives.extend(std::iter::repeat_n(text, weight.parse().unwrap()));
        }
        Grammar(rules)
    }

    /// Returns the text that `choices` derive from a rule; after the last choice, every choice is the first option.
    pub fn derive(&self, rule: &str, choices: &[u16]) -> String {
        let mut choices = choices.iter();
        self.derive_with(rule, |count| usize::from(choices.next().copied().unwrap_or(0)) % count)
    }

    /// Returns the text that a function derives from a rule, which chooses a number below its argument.
    pub fn derive_with(&self, rule: &str, choose_below: impl FnMut(usize) -> usize) -> String {
        let mut derivation = Derivation { grammar: self, choose_below, common: BTreeMap::new(), number: 0 };
        lay_out_columns(&derivation.expand(rule, MAX_DEPTH))
    }
}

struct Derivation<'d, C> {
    grammar: &'d Grammar<'d>,
    choose_below: C,
    /// The expansions of references that are equal everywhere.
    common: BTreeMap<String, String>,
    /// The number of the next alternative.
    number: usize,
}

impl<C: FnMut(usize) -> usize> Derivation<'_, C> {
    /// Expands a reference: a rule with its arguments.
    fn expand(&mut self, reference: &str, depth: usize) -> String {
        if let Some((before, rest)) = reference.split_once('{') {
            let (common, after) = rest.split_once('}').unwrap();
            let reference = format!("{before}{}{after}", self.expand_everywhere(common, depth));
            return self.expand(&reference, depth);
        }
        let mut words = reference.split(' ');
        let name = words.next().unwrap_or_default();
        if name.ends_with('!') {
            return self.expand_everywhere(&reference.replacen('!', "", 1), depth);
        }
        let (rule, count) = if let Some((rule, percent)) = name.split_once('?') {
            let percent = if percent.is_empty() { 50 } else { percent.parse().unwrap() };
            (rule, usize::from((self.choose_below)(100) >= 100 - percent))
        } else if let Some((rule, most)) = name.split_once('*') {
            (rule, (self.choose_below)(most.parse::<usize>().unwrap() + 1))
        } else {
            (name, 1)
        };
        let rule = match rule.split_once('~') {
            Some((general, kind)) => {
                let special = format!("{general}-{kind}");
                if self.grammar.0.contains_key(special.as_str()) { special } else { general.to_owned() }
            }
            None => rule.to_owned(),
        };
        let alternatives = self.grammar.0.get(rule.as_str()).unwrap_or_else(|| panic!("no rule `{rule}`"));
        let arguments: Vec<&str> = words.collect();
        let mut text = String::new();
        for _ in 0..count {
            let chosen = if depth == 0 { 0 } else { (self.choose_below)(alternatives.len()) };
            let mut alternative = insert_number(&alternatives[chosen], self.number);
            self.number += 1;
            for number in 1..=MAX_ARGUMENTS {
                let argument = arguments.get(number - 1).copied().unwrap_or_default();
                alternative = alternative.replace(&format!("${number}"), argument);
            }
            for (index, part) in alternative.split('`').enumerate() {
                text += &match index % 2 {
                    0 => part.to_owned(),
                    _ => self.expand(part, depth.saturating_sub(1)),
                };
            }
        }
        text
    }

    /// Expands a reference in the same way as before.
    fn expand_everywhere(&mut self, reference: &str, depth: usize) -> String {
        if let Some(expansion) = self.common.get(reference) {
            return expansion.clone();
        }
        let expansion = self.expand(reference, depth);
        self.common.insert(reference.to_owned(), expansion.clone());
        expansion
    }
}

/// Replaces each `#` after a letter.
fn insert_number(text: &str, number: usize) -> String {
    let mut parts = text.split('#');
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match replaced.ends_with(char::is_alphanumeric) {
            true => replaced += &number.to_string(),
            false => replaced.push('#'),
        }
        replaced += part;
    }
    replaced
}

/// Replaces columns by rows of a table.
fn lay_out_columns(text: &str) -> String {
    let Some((head, (columns, tail))) =
        text.split_once("[[[\n").and_then(|(head, rest)| Some((head, rest.split_once("]]]\n")?)))
    else {
        return text.to_owned();
    };
    let lines = |column: &str| -> Vec<String> {
        let lines = column.split(['\n', ';']).map(str::trim);
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let columns: Vec<Vec<String>> = columns.split("|\n").map(lines).collect();
    format!("{head}{}{tail}", render_rows(&columns))
}

/// Returns the rows of a test, from the column of each thread with its head.
pub fn render_rows(columns: &[Vec<String>]) -> String {
    // A thread needs a row, though it does nothing.
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(2);
    let row = |row: usize| {
        let cells = columns.iter().map(|column| column.get(row).map_or("", String::as_str));
        cells.collect::<Vec<_>>().join(" | ") + " ;\n"
    };
    (0..rows).map(row).collect()
}
