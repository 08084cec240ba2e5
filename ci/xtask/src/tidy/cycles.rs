//! Rule on modules: the files of a crate import each other without cycles.
//!
//! Nodes are files, edges are paths to items of other files, and a strongly connected component of several files
//! is a cycle. One kind of cycle is allowed: a module whose children use its items. Outside, only the module is
//! visible, so that the files are read as one. If all files of a component are descendants of one of them, the
//! edges to that one are dropped and the rest is searched again. The root of a crate is not such a module.

mod graph;
mod modules;

use std::collections::{BTreeMap, BTreeSet};

use self::graph::find_components;
use self::modules::{ItemReference, find_references};
use super::edges::read_manifests;
use super::source::{Finding, SourceFile};

/// A cycle that is allowed for now.
struct AllowedCycle {
    /// A file in it.
    member: &'static str,
    files: usize,
    /// The reason why it cannot be cut, or the plan to cut it.
    reason: &'static str,
}

/// The remaining cycles. Entries may only be removed, and their numbers of files may only decrease.
const ALLOWED_CYCLES: &[AllowedCycle] = &[
    AllowedCycle {
        member: "litmus/src/condition.rs",
        files: 11,
        reason: "one syntax tree: tests, conditions, outcomes and metadata name each other",
    },
    AllowedCycle {
        member: "litmus/src/syntax/calls.rs",
        files: 7,
        reason: "recursive descent: the parser and the parts of the grammar call each other",
    },
];

/// Rejects cycles of files in one crate, and entries of the list that no longer describe one.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    check_against(files, ALLOWED_CYCLES)
}

fn check_against(files: &[SourceFile], allowed: &[AllowedCycle]) -> Vec<Finding> {
    let sources: BTreeMap<&str, &SourceFile> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .map(|file| (file.path.as_str(), file))
        .collect();
    let mut findings = Vec::new();
    let mut matched = BTreeSet::new();
    for manifest in read_manifests(files).values() {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        for root in ["lib", "main"] {
            let references = find_references(&sources, &format!("{folder}src/{root}.rs"));
            for cycle in find_cycles(&references) {
                let entry = allowed.iter().find(|entry| cycle.contains(entry.member));
                matched.extend(entry.map(|entry| entry.member));
                findings.extend(cycle_finding(&cycle, &references, entry));
            }
        }
    }
    let stale = allowed.iter().filter(|entry| !matched.contains(entry.member));
    findings.extend(stale.map(|entry| Finding {
        file: entry.member.to_owned(),
        line: 0,
        message:
            "is listed in ci/xtask/src/tidy/cycles.rs and in no import cycle: remove the entry".to_owned(),
    }));
    findings
}

/// Returns the finding for a cycle, unless the entry describes it.
fn cycle_finding(
    cycle: &BTreeSet<&str>,
    references: &[ItemReference],
    entry: Option<&AllowedCycle>,
) -> Option<Finding> {
    let size = cycle.len();
    let message = match entry {
        Some(entry) if entry.files == size => return None,
        Some(entry) if entry.files > size => {
            format!("its import cycle has {size} files: write this number in ci/xtask/src/tidy/cycles.rs")
        }
        Some(AllowedCycle { files, reason, .. }) => format!(
            "an import cycle of {size} files instead of {files} ({reason}): move the new items\n{}",
            format_edges(cycle, references)
        ),
        None => format!(
            "an import cycle of {size} files: move the items of one edge to a file that both import\n{}",
            format_edges(cycle, references)
        ),
    };
    let file = entry.map(|entry| entry.member).or_else(|| cycle.first().copied())?;
    Some(Finding { file: file.to_owned(), line: 0, message })
}

/// Lists the edges of a cycle, those with the fewest names first: these are the cheapest to cut.
fn format_edges(cycle: &BTreeSet<&str>, references: &[ItemReference]) -> String {
    let mut edges: BTreeMap<(&str, &str), Vec<&ItemReference>> = BTreeMap::new();
    for reference in references {
        let ItemReference { from, to, .. } = reference;
        if cycle.contains(from.as_str()) && cycle.contains(to.as_str()) {
            edges.entry((from, to)).or_default().push(reference);
        }
    }
    let mut edges: Vec<_> = edges.into_iter().collect();
    edges.sort_by_key(|(_, references)| references.len());
    let lines = edges.iter().map(|((from, to), references)| {
        let names: Vec<_> = references.iter().map(|reference| reference.name.as_str()).collect();
        let line = references.iter().map(|reference| reference.line).min().unwrap_or_default();
        format!("    {from}:{line} uses {} of {to}", names.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the cycles of a crate, without those that only close through a module that holds all their files.
fn find_cycles(references: &[ItemReference]) -> Vec<BTreeSet<&str>> {
    let edges = references.iter().map(|reference| (reference.from.as_str(), reference.to.as_str()));
    let mut found = Vec::new();
    let mut pending = vec![edges.collect::<BTreeSet<_>>()];
    while let Some(edges) = pending.pop() {
        for component in find_components(&edges) {
            let module = component
                .iter()
                .find(|module| component.iter().all(|file| file == *module || is_descendant(file, module)));
            let Some(module) = module else {
                found.push(component);
                continue;
            };
            let is_remaining = |(from, to): &&(&str, &str)| {
                component.contains(from) && component.contains(to) && to != module
            };
            pending.push(edges.iter().filter(is_remaining).copied().collect());
        }
    }
    found.sort();
    found
}

/// Returns true if `file` is a child module of the module in `ancestor`, or a child of one.
fn is_descendant(file: &str, ancestor: &str) -> bool {
    let folder = ancestor.strip_suffix("/mod.rs").or_else(|| ancestor.strip_suffix(".rs"));
    folder.and_then(|folder| file.strip_prefix(folder)).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::super::source::test_file;
    use super::*;

    #[test]
    fn a_listed_cycle_keeps_its_size() {
        let tree = |x: &str| {
            [
                test_file("a/Cargo.toml", "[package]\nname = \"a\"\n"),
                test_file("a/src/lib.rs", "mod x;\nmod y;\n"),
                test_file("a/src/x.rs", x),
                test_file("a/src/y.rs", "pub struct Y;\nimpl Y { fn x() -> crate::x::X { todo() } }\n"),
            ]
        };
        let cyclic = "pub struct X(crate::y::Y);\n";
        for (x, files, expected) in [
            (cyclic, 2, ""),
            (cyclic, 1, "an import cycle of 2 files instead of 1 (a tree)"),
            (cyclic, 3, "has 2 files: write this number"),
            ("pub struct X;\n", 2, "and in no import cycle: remove the entry"),
        ] {
            let allowed = [AllowedCycle { member: "a/src/x.rs", files, reason: "a tree" }];
            let found = check_against(&tree(x), &allowed);
            assert!(found.is_empty() == expected.is_empty(), "{found:?}");
            assert!(found.iter().all(|finding| finding.message.contains(expected)), "{found:?}");
        }
    }

    #[test]
    fn every_entry_has_a_reason() {
        for entry in ALLOWED_CYCLES {
            assert!(entry.reason.len() > 10 && entry.files > 1, "{}", entry.member);
        }
    }
}
