//! WGSL: the directives that naga refuses, pipeline-overridable constants, and naga as a library.
//!
//! Texts are changed without a grammar, and line numbers do not change. `compile` returns the same module as
//! `naga -g` of the same version.

#[cfg(feature = "naga")]
mod compile;

use entry_point::input_place::{OverrideRole, OverrideValue, UnsetOverride};

use crate::scan::{has_word, words};

#[cfg(feature = "naga")]
pub use compile::{COMPILER, WgslError, compile};

/// The values of the pipeline-overridable constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideValues {
    /// Constants with a given value, by name.
    pub set: Vec<(String, String)>,
    /// Constants without a given value.
    pub unset: Vec<UnsetOverride>,
    /// The first given name that is unknown, and the names in the source.
    pub unknown: Option<(String, Vec<String>)>,
}

impl OverrideValues {
    /// Returns the value of each constant of a source: the given one, else the default in the source, else an
    /// assumed one. `plain` is the text without comments; the keys of `given` are names or numbers.
    pub fn from_source(plain: &str, given: &[(String, String)]) -> OverrideValues {
        let mut values = OverrideValues::default();
        let declared = parse_overrides(plain);
        let has_name = |declared: &OverrideDeclaration, name: &String| {
            *name == declared.name || Some(name) == declared.id.as_ref()
        };
        let unknown =
            given.iter().find(|(name, _)| !declared.iter().any(|declared| has_name(declared, name)));
        values.unknown = unknown
            .map(|(name, _)| (name.clone(), declared.iter().map(|declared| declared.name.clone()).collect()));
        for declared in declared {
            let is_named = |(name, _): &&(String, String)| has_name(&declared, name);
            if let Some((_, value)) = given.iter().find(is_named) {
                values.set.push((declared.name, value.clone()));
            } else {
                let default =
                    |value: &String| OverrideValue { value: value.clone(), role: OverrideRole::Default };
                let default = declared.default.as_ref().map(default);
                let value = default.unwrap_or_else(|| assumed_value(&declared, plain));
                values.unset.push(UnsetOverride { value, name: declared.name });
            }
        }
        values
    }

    /// Returns the names with the values that the source lacks.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let unset = self.unset.iter().filter(|unset| !unset.value.is_default());
        let unset = unset.map(|unset| (unset.name.as_str(), unset.value.value.as_str()));
        self.set.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(unset)
    }
}

/// Returns a text of WGSL without the directives that naga does not support, or `None` if it has none. They
/// only permit language features and set the severity of diagnostics.
pub fn strip_unsupported_directives(text: &str, plain: &str) -> Option<String> {
    let is_dropped = |line: &str| {
        let line = line.trim();
        line.ends_with(';')
            && match words(line).next() {
                Some("diagnostic") => line.starts_with("diagnostic"),
                Some("requires") => true,
                // Naga rejects these names, although it supports subgroup operations without them.
                Some("enable") => words(line)
                    .skip(1)
                    .all(|name| name.starts_with("subgroups") || name.starts_with("chromium")),
                _ => false,
            }
    };
    let mut is_changed = false;
    let mut changed = String::with_capacity(text.len());
    for (line, plain) in text.lines().zip(plain.lines()) {
        if is_dropped(plain) {
            is_changed = true;
        } else {
            changed.push_str(line);
        }
        changed.push('\n');
    }
    is_changed.then_some(changed)
}

/// A declaration of a pipeline-overridable constant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OverrideDeclaration {
    name: String,
    /// The type; empty if it is inferred.
    type_name: String,
    /// The number in `@id`.
    id: Option<String>,
    default: Option<String>,
}

/// Returns the overrides of a text of WGSL without comments.
fn parse_overrides(plain: &str) -> Vec<OverrideDeclaration> {
    let mut found = Vec::new();
    for (statement, _) in plain.match_indices("override").map(|(at, word)| (at, word.len())) {
        let before = plain[..statement].trim_end();
        let rest = &plain[statement + "override".len()..];
        let is_statement_start = before.is_empty() || before.ends_with([';', '}', ')']);
        if !is_statement_start || !rest.starts_with(char::is_whitespace) {
            continue;
        }
        let Some((declared, _)) = rest.split_once(';') else { continue };
        let (head, default) = match declared.split_once('=') {
            Some((head, value)) => (head, Some(value.trim().to_owned())),
            None => (declared, None),
        };
        let (name, kind) = head.split_once(':').unwrap_or((head, ""));
        let attribute = before.rsplit_once('@').map(|(_, attribute)| attribute).unwrap_or_default();
        let id = attribute.strip_prefix("id").and_then(|id| words(id).next()).map(str::to_owned);
        let id = id.filter(|_| attribute.ends_with(')') && !attribute.contains([';', '}']));
        found.push(OverrideDeclaration {
            name: name.trim().to_owned(),
            type_name: kind.trim().to_owned(),
            id,
            default,
        });
    }
    found
}

/// Returns the assumed value for an override without a default: a common size if it is a workgroup size.
fn assumed_value(declared: &OverrideDeclaration, plain: &str) -> OverrideValue {
    let sizes =
        plain.split("@workgroup_size").skip(1).filter_map(|size| size.split_once('(')?.1.split_once(')'));
    let dimension = sizes
        .flat_map(|(size, _)| size.split(',').enumerate())
        .find(|(_, size)| has_word(size, &declared.name));
    let (value, role) = match (declared.type_name.as_str(), dimension) {
        ("bool", _) => ("false", OverrideRole::Size),
        (_, Some((0, _))) => ("64", OverrideRole::Size),
        (_, Some(_)) => ("1", OverrideRole::Size),
        // One round of a loop does not race with the next one.
        _ => ("2", OverrideRole::Number),
    };
    OverrideValue { value: value.to_owned(), role }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_of_wgsl_are_dropped() {
        let text = "enable f16;\nenable subgroups;\ndiagnostic(off, x);\nfn f() {}\n";
        let expected = "enable f16;\n\n\nfn f() {}\n";
        assert_eq!(strip_unsupported_directives(text, text).as_deref(), Some(expected));
        assert_eq!(strip_unsupported_directives("enable f16;\n", "enable f16;\n"), None);
    }

    #[test]
    fn overrides_have_names_types_and_values() {
        let text = "override a: u32;\n@id(7) override b: f32 = 2.0; override c = 1u; fn override_x() {}";
        let found: Vec<String> = (parse_overrides(text).iter())
            .map(|one| {
                format!(
                    "{}:{}:{}:{}",
                    one.name,
                    one.type_name,
                    one.id.as_deref().unwrap_or("-"),
                    one.default.as_deref().unwrap_or("-")
                )
            })
            .collect();
        assert_eq!(found, ["a:u32:-:-", "b:f32:7:2.0", "c::-:1u"]);
    }
}
