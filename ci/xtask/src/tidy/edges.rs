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
