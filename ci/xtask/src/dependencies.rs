//! `dependencies`: applies `deny.toml` without `cargo deny`: licences, sources and wildcard versions.
//!
//! An unknown rule in the file is an error and never ignored.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use crate::error::{ChoreError, RulesError};
use crate::tidy::source::SourceReadError;

/// The rules of `deny.toml`. Advisories are not checked, as their database is not in a registry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    #[serde(rename = "graph")]
    _graph: Graph,
    #[serde(rename = "advisories")]
    _advisories: toml::Table,
    licenses: Licenses,
    #[serde(rename = "bans")]
    _bans: Bans,
    #[serde(rename = "sources")]
    _sources: Sources,
}

/// The features to check: all, as in the call of `cargo metadata`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Graph {
    #[serde(rename = "all-features")]
    _all_features: True,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Licenses {
    /// Allowed licences by SPDX identifier, optionally with an exception.
    allow: Vec<String>,
    /// Confidence with which `cargo deny` must recognize a licence text; here each crate names its licence.
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: f64,
    #[serde(rename = "unused-allowed-license")]
    _unused_allowed_license: Allow,
    #[serde(rename = "private")]
    _private: Private,
}

/// Unpublished crates of the workspace are not checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Private {
    #[serde(rename = "ignore")]
    _ignore: True,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Warn,
    #[serde(rename = "wildcards")]
    _wildcards: Deny,
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: True,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Deny,
    #[serde(rename = "unknown-git")]
    _unknown_git: Deny,
}

/// Defines an enum with one variant: the only value of a rule that this check implements.
macro_rules! only {
    ($name:ident, $word:literal) => {
        #[derive(Debug, Deserialize)]
        enum $name {
            #[serde(rename = $word)]
            Only,
        }
    };
}

only!(Deny, "deny");
only!(Warn, "warn");
only!(Allow, "allow");

/// The value `true`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "bool")]
struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<True, Self::Error> {
        if value { Ok(True) } else { Err("only true is supported") }
    }
}

/// The output of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct CargoMetadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// The registry or repository; `None` for a package of the workspace.
    source: Option<String>,
    dependencies: Vec<DeclaredDependency>,
}

#[derive(Debug, Deserialize)]
struct DeclaredDependency {
    name: String,
    req: String,
    path: Option<String>,
}

/// Applies `deny.toml` to the dependencies of the workspace and prints the violations.
pub fn run(root: &Path, _: &[String]) -> Result<(), ChoreError> {
    let path = root.join("deny.toml");
    let rules = std::fs::read_to_string(&path).map_err(|source| SourceReadError { path, source })?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--all-features", "--locked"])
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(ChoreError::Start)?;
    if !output.status.success() {
        return Err(ChoreError::Command(output.status));
    }
    let (count, refused) = list_violations(&rules, &output.stdout)?;
    for line in &refused {
        println!("{line}");
    }
    if !refused.is_empty() {
        return Err(ChoreError::Refused(refused.len()));
    }
    println!("dependencies: {count} packages, no violations of deny.toml");
    Ok(())
}

/// Returns the number of external packages, and one line for each violation.
fn list_violations(rules: &str, metadata: &[u8]) -> Result<(usize, Vec<String>), RulesError> {
    let rules: Rules = toml::from_str(rules)?;
    let metadata: CargoMetadata = serde_json::from_slice(metadata)?;
    let allowed = rules
        .licenses
        .allow
        .iter()
        .map(|name| Licensee::parse(name).map_err(|_| RulesError::Licence(name.clone())));
    let allowed = allowed.collect::<Result<Vec<_>, _>>()?;
    let mut lines = Vec::new();
    // The most common source is taken as the allowed registry, so that its address is not hard-coded.
    let registry = most_common_word(metadata.packages.iter().filter_map(|package| package.source.as_deref()));
    let mut count = 0;
    for Package { name, version, license, source, dependencies } in &metadata.packages {
        let Some(source) = source else {
            for wildcard in
                dependencies.iter().filter(|dependency| dependency.req == "*" && dependency.path.is_none())
            {
                lines.push(format!("{name}: {} is required in any version", wildcard.name));
            }
            continue;
        };
        count += 1;
        if !source.starts_with("registry+") || Some(source.as_str()) != registry {
            lines.push(format!("{name} {version} comes from {source}"));
        }
        // Old crates write `MIT/Apache-2.0`, which cargo treats as a choice.
        match license.as_deref().map(|text| Expression::parse_mode(text, ParseMode::LAX)) {
            Some(Ok(expression)) => {
                if !expression.evaluate(|wanted| allowed.iter().any(|one| one.satisfies(wanted))) {
                    lines.push(format!("{name} {version}: licence {expression} is not allowed"));
                }
            }
            Some(Err(error)) => lines.push(format!("{name} {version}: {}", error.reason)),
            None => lines.push(format!("{name} {version} names no licence")),
        }
    }
    Ok((count, lines))
}

/// Returns the most frequent word.
fn most_common_word<'a>(words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut counts = std::collections::BTreeMap::new();
    for word in words {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|&(_, count)| count).map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = include_str!("../../../deny.toml");

    fn violation_lines(packages: &str) -> Vec<String> {
        list_violations(RULES, format!(r#"{{ "packages": [{packages}] }}"#).as_bytes()).unwrap().1
    }

    fn package(name: &str, license: &str, source: &str) -> String {
        format!(
            r#"{{ "name": "{name}", "version": "1.0.0", "license": {license}, "source": {source}, "dependencies": [] }}"#
        )
    }

    const KNOWN: &str = r#""registry+known""#;

    #[test]
    fn licences_are_choices_and_sums() {
        let of = |license: &str| violation_lines(&package("a", &format!("{license:?}"), KNOWN));
        for fine in ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
            assert_eq!(of(fine), [""; 0], "{fine}");
        }
        assert_eq!(of("GPL-3.0-only"), ["a 1.0.0: licence GPL-3.0-only is not allowed"]);
        assert_eq!(of("MIT AND GPL-3.0-only").len(), 1);
        assert_eq!(of("Apache-2.0 WITH Classpath-exception-2.0").len(), 1);
        assert_eq!(of("my own").len(), 1);
        assert_eq!(violation_lines(&package("a", "null", KNOWN)), ["a 1.0.0 names no licence"]);
    }

    #[test]
    fn dependencies_outside_the_registry_are_refused() {
        let known = format!("{}, {}", package("a", r#""MIT""#, KNOWN), package("b", r#""MIT""#, KNOWN));
        for other in ["git+elsewhere", "registry+other"] {
            let strange = package("c", r#""MIT""#, &format!("{other:?}"));
            assert_eq!(
                violation_lines(&format!("{known}, {strange}")),
                [format!("c 1.0.0 comes from {other}")]
            );
        }
        assert_eq!(violation_lines(&known), [""; 0]);
        assert_eq!(violation_lines(&package("c", r#""MIT""#, r#""git+elsewhere""#)).len(), 1);
    }

    #[test]
    fn wildcard_versions_are_refused_except_for_path_dependencies() {
        let of = |path: &str| {
            violation_lines(&format!(
                r#"{{ "name": "own", "version": "0.1.0", "license": null, "source": null, "dependencies":
                   [{{ "name": "a", "req": "*", "path": {path} }}, {{ "name": "b", "req": "^1", "path": null }}] }}"#
            ))
        };
        assert_eq!(of("null"), ["own: a is required in any version"]);
        assert_eq!(of(r#""beside""#), [""; 0]);
    }

    #[test]
    fn unknown_rules_are_refused() {
        for (known, strange) in [
            ("wildcards = \"deny\"", "wildcards = \"allow\""),
            ("wildcards = \"deny\"", "wildcards = \"deny\"\ndeny = [\"openssl\"]"),
            ("\"Zlib\"", "\"Zlibb\""),
            ("all-features = true", "all-features = false"),
        ] {
            assert!(RULES.contains(known));
            assert!(
                list_violations(&RULES.replace(known, strange), br#"{ "packages": [] }"#).is_err(),
                "{strange}"
            );
        }
    }
}
