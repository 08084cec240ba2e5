//! Expansion of the macros that declare entry points: those with attributes, system values or `void` in their bodies.
//!
//! Conditional compilation is ignored; of several definitions of a name, the last one counts.

use std::collections::HashMap;

use super::scan::is_identifier_character;

/// Upper bounds on nested macros and on the bytes of the expanded text.
const MAX_ROUNDS: usize = 4;
const MAX_BYTES: usize = 1 << 22;

struct MacroDefinition {
    /// `None` for a macro without a list of parameters.
    parameters: Option<Vec<String>>,
    body: String,
}

/// Returns a text in which the macros that declare entry points are expanded, without definitions of macros.
pub fn expand_declarations(text: &str) -> String {
    let (mut code, mut all) = (String::new(), HashMap::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.to_owned();
        while line.ends_with('\\') && line.trim_start().starts_with('#') {
            line.pop();
            line += lines.next().unwrap_or_default();
        }
        match parse_definition(&line) {
            Some((name, definition)) => _ = all.insert(name, definition),
            None => code += &line,
        }
        code.push('\n');
    }
    for _ in 0..MAX_ROUNDS {
        let declares =
            |body: &str| ["numthreads", "shader(", "SV_", "void "].iter().any(|word| body.contains(word));
        let nested: Vec<String> =
            all.iter().filter(|(_, one)| declares(&one.body)).map(|(name, _)| name.clone()).collect();
        let is_used = |(_, one): &(&String, &MacroDefinition)| {
            declares(&one.body) || nested.iter().any(|name| has_identifier(&one.body, name))
        };
        let used: HashMap<&str, &MacroDefinition> =
            all.iter().filter(is_used).map(|(name, one)| (name.as_str(), one)).collect();
        let expanded = expand_once(&code, &used);
        if expanded == code || expanded.len() > MAX_BYTES {
            break;
        }
        code = expanded;
    }
    code
}

fn parse_definition(line: &str) -> Option<(String, MacroDefinition)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let (name, rest) = rest.split_at(rest.find(|c| !is_identifier_character(c)).unwrap_or(rest.len()));
    let (parameters, body) = match rest.strip_prefix('(') {
        Some(rest) => {
            let (list, body) = rest.split_once(')')?;
            (Some(list.split(',').map(|one| one.trim().to_owned()).collect()), body)
        }
        None => (None, rest),
    };
    Some((name.to_owned(), MacroDefinition { parameters, body: body.trim().to_owned() }))
}

/// Splits a text into identifiers and what is between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_identifier = rest.chars().next().map(is_identifier_character)?;
        let end = rest.find(|c| is_identifier_character(c) != is_identifier).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

fn has_identifier(text: &str, name: &str) -> bool {
    tokens(text).any(|token| token == name)
}

fn expand_once(text: &str, macros: &HashMap<&str, &MacroDefinition>) -> String {
    let (mut expanded, mut at) = (String::new(), 0);
    while let Some(token) = tokens(&text[at..]).next() {
        at += token.len();
        let used = macros.get(token).and_then(|one| match &one.parameters {
            None => Some((one.body.clone(), at)),
            Some(parameters) => {
                let open = at + text[at..].find(|c: char| !c.is_whitespace())?;
                let (arguments, end) = parse_arguments(text, open)?;
                let part = |token: &str| {
                    let index = parameters.iter().position(|known| known == token);
                    index.and_then(|index| arguments.get(index)).map_or(token, |text| text.trim()).to_owned()
                };
                Some((tokens(&one.body).map(part).collect::<String>().replace("##", ""), end))
            }
        });
        match used {
            Some((body, end)) => (expanded, at) = (expanded + &body, end),
            None => expanded += token,
        }
    }
    expanded
}

/// Returns the arguments in the parentheses that open at a position, and the position after them.
fn parse_arguments(text: &str, open: usize) -> Option<(Vec<&str>, usize)> {
    let (mut depth, mut start, mut arguments) = (0_u32, open + 1, Vec::new());
    for (offset, c) in text[open..].char_indices() {
        let at = open + offset;
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => {
                arguments.push(&text[start..at]);
                return Some((arguments, at + 1));
            }
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 1 => {
                arguments.push(&text[start..at]);
                start = at + 1;
            }
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}
