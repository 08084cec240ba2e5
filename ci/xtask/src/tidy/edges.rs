//! Rules on crate dependencies: ARCHITECTURE.md lists every crate and exactly the edges of the manifests.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Finding, SourceFile};

pub(super) const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The markers of the list in ARCHITECTURE.md.
const START: &str = "<!-- crate edges -->";
const END: &str = "<!-- end of crate edges -->";

type Edges = BTreeMap<String, BTreeSet<String>>;

/// Compares the manifests with the list. Dev-dependencies are not restricted.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let finding = |message: String| Finding { file: ARCHITECTURE.to_owned(), line: 0, message };
    let Some(map) = files.iter().find(|file| file.path == ARCHITECTURE) else {
        return vec![finding("missing".to_owned())];
    };
    let Some(allowed) = parse_edge_list(&map.text) else {
        return vec![finding(format!("no list of crate edges between {START:?} and {END:?}"))];
    };
    let manifests = read_manifests(files);
    let mut findings = Vec::new();
    for (name, manifest) in &manifests {
        let Some(targets) = allowed.get(name) else {
            findings.push(finding(format!("the crate {name} is not listed among the crate edges")));
            continue;
        };
        for dependency in
            declared_dependencies(&manifest.table).intersection(&manifests.keys().cloned().collect())
        {
            if !targets.contains(dependency) && !targets.contains("*") {
                findings.push(Finding {
                    file: manifest.path.clone(),
                    line: 0,
                    message: format!(
                        "{name} may not depend on {dependency}: {ARCHITECTURE} does not list that edge"
                    ),
                });
            }
        }
        if declared_dependencies(&manifest.table).contains("ash")
            && manifest.path != "harness/device/Cargo.toml"
        {
            findings.push(Finding {
                file: manifest.path.clone(),
                line: 0,
                message: "`ash` belongs in harness/device alone".to_owned(),
            });
        }
    }
    for name in allowed.keys().filter(|name| !manifests.contains_key(*name)) {
        findings.push(finding(format!("the crate {name} is listed but does not exist")));
    }
    findings
}

/// Parses the lines `name → a, b` between the markers; `∅` for none, `all` for every crate.
fn parse_edge_list(text: &str) -> Option<Edges> {
    let list = text.split_once(START)?.1.split_once(END)?.0;
    let edges = list
        .lines()
        .filter_map(|line| line.split_once('→'))
        .map(|(name, targets)| {
            let targets = targets.split(',').map(|target| match target.trim() {
                "all" => "*".to_owned(),
                name => name.to_owned(),
            });
            (name.trim().to_owned(), targets.filter(|target| target != "∅").collect())
        })
        .collect();
    Some(edges)
}

pub(super) struct Manifest {
    pub path: String,
    table: toml::Table,
}

/// Returns the manifests of packages, by package name.
pub(super) fn read_manifests(files: &[SourceFile]) -> BTreeMap<String, Manifest> {
    let mut found = BTreeMap::new();
    for file in files.iter().filter(|file| file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml")) {
        // A manifest that is not valid TOML stops cargo with a better message.
        let Ok(table) = file.text.parse::<toml::Table>() else { continue };
        let name = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
        if let Some(name) = name.map(str::to_owned) {
            found.insert(name, Manifest { path: file.path.clone(), table });
        }
    }
    found
}

fn declared_dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    ["dependencies", "build-dependencies"]
        .iter()
        .filter_map(|section| manifest.get(*section).and_then(toml::Value::as_table))
        .flat_map(|table| table.keys().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::test_file;
    use super::*;

    fn test_tree(edges: &str) -> Vec<SourceFile> {
        vec![
            test_file(ARCHITECTURE, &format!("# Map\n{START}\n```\n{edges}\n```\n{END}\n")),
            test_file("Cargo.toml", "[workspace]\nmembers = []\n"),
            test_file("litmus/Cargo.toml", "[package]\nname = \"litmus\"\n"),
            test_file(
                "shaders/Cargo.toml",
                "[package]\nname = \"shaders\"\n[dependencies]\nlitmus.workspace = true\nrspirv = \"1\"\n[dev-dependencies]\ncli = \"1\"\n",
            ),
            test_file(
                "harness/cli/Cargo.toml",
                "[package]\nname = \"cli\"\n[dependencies]\nshaders = \"1\"\nash = \"1\"\n",
            ),
        ]
    }

    fn messages(files: &[SourceFile]) -> Vec<String> {
        check(files).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn the_listed_edges_are_allowed_and_dev_dependencies_are_free() {
        assert_eq!(
            messages(&test_tree("litmus → ∅\nshaders → litmus\ncli → all")),
            ["harness/cli/Cargo.toml: `ash` belongs in harness/device alone"]
        );
    }

    #[test]
    fn an_edge_that_is_not_listed_is_refused() {
        let found = messages(&test_tree("litmus → ∅\nshaders → ∅\ncli → all"));
        let expected = "shaders/Cargo.toml: shaders may not depend on litmus";
        assert!(found.iter().any(|message| message.starts_with(expected)), "{found:?}");
    }

    #[test]
    fn crates_and_list_agree() {
        let found = messages(&test_tree("litmus → ∅\nshaders → litmus\nmodel → litmus"));
        assert!(found.iter().any(|message| message.contains("the crate cli is not listed")), "{found:?}");
        assert!(found.iter().any(|message| message.contains("the crate model is listed but does not exist")));
    }

    #[test]
    fn a_missing_map_or_list_is_refused() {
        assert_eq!(messages(&[]), ["ARCHITECTURE.md: missing"]);
        assert!(messages(&[test_file(ARCHITECTURE, "")])[0].contains("no list of crate edges"));
    }
}
