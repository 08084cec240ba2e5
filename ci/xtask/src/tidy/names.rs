//! Rule on type names: two crates may export types of the same name only if `ci/xtask/shared-names.md` lists
//! it.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{blank_literals, words};
use super::edges::{Manifest, read_manifests};
use super::source::{Finding, SourceFile};

const SHARED_NAMES: &str = "ci/xtask/shared-names.md";

/// The markers around the table in that file.
const START: &str = "<!-- shared names -->";
const END: &str = "<!-- end of shared names -->";

/// Compares the public type names of the libraries with the table.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let finding = |message: String| Finding { file: SHARED_NAMES.to_owned(), line: 0, message };
    let manifests = read_manifests(files);
    let libraries = Libraries { files, crates: manifests.keys().map(String::as_str).collect() };
    let mut owners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (name, manifest) in &manifests {
        let Manifest { path, .. } = manifest;
        let root = path.strip_suffix("Cargo.toml").unwrap_or_default();
        for type_name in libraries.exported_types(&format!("{root}src/lib.rs"), &format!("{root}src")) {
            owners.entry(type_name).or_default().insert(name);
        }
    }
    owners.retain(|_, crates| crates.len() > 1);
    let table =
        files.iter().find(|file| file.path == SHARED_NAMES).and_then(|file| parse_shared_names(&file.text));
    let Some(listed) = table else {
        return if owners.is_empty() {
            Vec::new()
        } else {
            vec![finding(format!("no table of shared names between {START:?} and {END:?}"))]
        };
    };
    let unlisted = owners.iter().filter(|(name, _)| !listed.contains(*name)).map(|(name, crates)| {
        let crates: Vec<_> = crates.iter().copied().collect();
        finding(format!("`{name}` is a public type of {}: rename one, or list it", crates.join(", ")))
    });
    let unshared = listed
        .iter()
        .filter(|name| !owners.contains_key(*name))
        .map(|name| finding(format!("`{name}` is listed as shared and is not")));
    unlisted.chain(unshared).collect()
}

/// Returns the names in the first column of the table; rows without a reason are ignored.
fn parse_shared_names(text: &str) -> Option<BTreeSet<String>> {
    let table = text.split_once(START)?.1.split_once(END)?.0;
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    Some(rows.filter(|(_, reason)| reason.len() > 10).map(|(name, _)| name.to_owned()).collect())
}

/// The sources, and the names of the workspace's crates.
struct Libraries<'f> {
    files: &'f [SourceFile],
    crates: BTreeSet<&'f str>,
}

impl Libraries<'_> {
    /// Returns the types that a module exports: its public ones, those of its public modules, and re-exports
    /// of its private ones. Re-exports of other crates do not count.
    fn exported_types(&self, path: &str, folder: &str) -> BTreeSet<String> {
        let Some(file) = self.files.iter().find(|file| file.path == path) else { return BTreeSet::new() };
        let text = blank_literals(&file.text);
        let mut found = BTreeSet::new();
        // rustfmt leaves the items of a module unindented.
        for (at, _) in text.match_indices("pub ").filter(|(at, _)| *at == 0 || text[..*at].ends_with('\n')) {
            let item = &text[at + "pub ".len()..];
            let mut parts = words(item);
            match (parts.next(), parts.next()) {
                (Some("struct" | "enum" | "trait" | "type" | "union"), Some(name)) => {
                    found.insert(name.to_owned());
                }
                (Some("mod"), Some(name)) => {
                    let inner = format!("{folder}/{name}");
                    found.extend(self.exported_types(&format!("{inner}.rs"), &inner));
                }
                (Some("use"), Some(first))
                    if !self.crates.contains(first) || text.contains(&format!("mod {first};")) =>
                {
                    let path = item.split(';').next().unwrap_or_default();
                    if path.ends_with("::*") {
                        let inner = format!("{folder}/{first}");
                        found.extend(self.exported_types(&format!("{inner}.rs"), &inner));
                    }
                    found.extend(imported_names(path).filter(|name| is_type(name)).map(str::to_owned));
                }
                _ => {}
            }
        }
        found
    }
}

/// Returns the names that a `use` imports: the last part of each path, or the name after `as`.
fn imported_names(path: &str) -> impl Iterator<Item = &str> {
    path.split([',', '{', '}']).filter_map(|part| words(part).rfind(|word| !word.is_empty()))
}

/// Returns true if a name is written as a type: `Plan`, but not `plan` or `PLANS`.
fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}
