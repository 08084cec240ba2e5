//! Preprocessor names of which a source expects one: `#if defined(A) … #elif defined(B) … #endif`.
//!
//! If each part assigns to a variable and no name is defined, the variable is not initialized. The names are then an
//! input that no option supplies. The scan is by lines, so that it may miss such parts.

use std::collections::BTreeSet;

use entry_point::input_place::{OverrideRole, OverrideValue, UnsetOverride};

use super::scan::{directive_argument, is_identifier_character, words};

/// The parts of a condition so far.
struct ConditionalParts {
    /// The names; `None` if a part has another condition.
    names: Option<Vec<String>>,
    /// The variables that each part assigns to.
    assigned: Vec<BTreeSet<String>>,
}

/// Returns the names of which none is defined, in a text without comments.
pub fn missing_definitions(text: &str, defines: &[String]) -> Vec<UnsetOverride> {
    let mut defined: BTreeSet<&str> = defines.iter().filter_map(|define| words(define).next()).collect();
    for line in text.lines() {
        defined.extend(directive_argument(line, "define").and_then(|name| words(name).next()));
        // A kernel of Unity may define any of the words after its name.
        defined.extend(
            directive_argument(line, "pragma")
                .filter(|line| line.starts_with("kernel"))
                .into_iter()
                .flat_map(words),
        );
    }
    let mut found: Vec<UnsetOverride> = Vec::new();
    let mut open_conditions: Vec<ConditionalParts> = Vec::new();
    for line in text.lines() {
        let opened = directive_argument(line, "if").map(required_name);
        let opened = opened.or_else(|| directive_argument(line, "ifdef").map(|name| Some(name.to_owned())));
        if let Some(name) = opened.or_else(|| directive_argument(line, "ifndef").map(|_| None)) {
            let names = name.map(|name| vec![name]);
            open_conditions.push(ConditionalParts { names, assigned: vec![BTreeSet::new()] });
        } else if let Some(condition) =
            directive_argument(line, "elif").or_else(|| directive_argument(line, "else"))
        {
            let Some(parts) = open_conditions.last_mut() else { continue };
            parts.names = parts.names.take().zip(required_name(condition)).map(|(mut names, name)| {
                names.push(name);
                names
            });
            parts.assigned.push(BTreeSet::new());
        } else if directive_argument(line, "endif").is_some() {
            let Some(ConditionalParts { names: Some(names), assigned }) = open_conditions.pop() else {
                continue;
            };
            let everywhere = assigned.into_iter().reduce(|one, other| &one & &other).unwrap_or_default();
            let is_open = names.len() > 1 && !names.iter().any(|name| defined.contains(name.as_str()));
            let name = names.join(" or ");
            if is_open && !everywhere.is_empty() && !found.iter().any(|known| known.name == name) {
                let value = "none of them".to_owned();
                found.push(UnsetOverride {
                    name,
                    value: OverrideValue { value, role: OverrideRole::Definition },
                });
            }
        } else if let Some(parts) = open_conditions.last_mut()
            && let (Some(variable), Some(assigned)) = (assigned_variable(line), parts.assigned.last_mut())
        {
            assigned.insert(variable.to_owned());
        }
    }
    found
}

/// Returns the name in `defined(NAME)` or `defined NAME`, if that is the whole condition.
fn required_name(condition: &str) -> Option<String> {
    let name = condition.trim().strip_prefix("defined")?.trim();
    let name = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')).unwrap_or(name).trim();
    (!name.is_empty() && name.chars().all(is_identifier_character)).then(|| name.to_owned())
}

/// Returns the variable that a line assigns to as a whole: `name = …`.
fn assigned_variable(line: &str) -> Option<&str> {
    let (variable, value) = line.split_once('=')?;
    let variable = variable.trim();
    let is_name = !variable.is_empty() && variable.chars().all(is_identifier_character);
    (is_name && !value.starts_with('=')).then_some(variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_definitions_is_expected() {
        let keys = "#if defined(UINT)\n  t = a[i];\n#elif defined(INT)\n  t = flip(a[i]);\n#endif\n";
        let cases = [
            (keys.to_owned(), vec![], vec!["UINT or INT"]),
            (keys.to_owned(), vec!["INT=1".to_owned()], vec![]),
            (format!("#define UINT\n{keys}"), vec![], vec![]),
            (format!("#pragma kernel Sort UINT\n{keys}"), vec![], vec![]),
            (keys.replace("#endif", "#else\n t = 0;\n#endif"), vec![], vec![]),
            (keys.replace("  t = flip", "  u = flip"), vec![], vec![]),
            (keys.replace("#elif defined(INT)", "#elif BITS == 16"), vec![], vec![]),
        ];
        for (text, defines, expected) in cases {
            let found = missing_definitions(&text, &defines);
            let found: Vec<&str> = found.iter().map(|unset| unset.name.as_str()).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
