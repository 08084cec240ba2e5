//! Rules on ARCHITECTURE.md, CONTRIBUTING.md and GLOSSARY.md: each path, type, function and constant that
//! they name exists.

use std::collections::BTreeSet;

use super::code::{blank_literals, words};
use super::source::{Finding, SourceFile};

const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md"];

/// File name extensions: a quotation with one of them is a path.
const ENDINGS: [&str; 7] = [".rs", ".toml", ".tsv", ".txt", ".cat", ".md", ".c"];

/// Checks the text in backticks, line by line.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let tree = RepositoryIndex::from_files(files);
    let mut findings = Vec::new();
    for document in files.iter().filter(|file| DOCUMENTS.contains(&file.path.as_str())) {
        let mut fenced = false;
        for (index, line) in document.text.lines().enumerate() {
            fenced ^= line.starts_with("```");
            if fenced {
                continue;
            }
            let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
            let crates: Vec<&str> = quoted.iter().filter_map(|name| tree.innermost_crate(name)).collect();
            for name in quoted {
                let message = if let Some(path) = quoted_path(name, &tree) {
                    if tree.has_path(path, &crates) {
                        continue;
                    }
                    format!("`{name}` is not a path, from the root or in the crates that the line names")
                } else if is_name(name) && !tree.is_defined(name) {
                    format!("no type, function or constant is named `{name}`")
                } else {
                    continue;
                };
                findings.push(Finding { file: document.path.clone(), line: index + 1, message });
            }
        }
    }
    findings
}

/// Returns the path in a quotation, up to a placeholder in capital letters: `corpus` for `corpus/FAMILY/`.
fn quoted_path<'n>(name: &'n str, tree: &RepositoryIndex<'_>) -> Option<&'n str> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let first = name.split('/').next().unwrap_or_default();
    let named = ENDINGS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
        || name.ends_with('/')
        || name.contains('/') && tree.paths.contains(first);
    if !named || !name.chars().all(is_path) || name.starts_with('.') {
        return None;
    }
    let placeholder =
        name.split('/').find(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()));
    let end = placeholder.and_then(|any| name.find(any)).unwrap_or(name.len());
    Some(name[..end].trim_end_matches('/')).filter(|path| !path.is_empty())
}

/// Returns true if a quotation names an item of the workspace: a module path such as `results::judge`, a type
/// or a constant.
fn is_name(name: &str) -> bool {
    let is_word = |part: &str| !part.is_empty() && words(part).count() == 1;
    let is_capitalized = name.starts_with(char::is_uppercase) && name.len() > 2;
    let is_variable = name.starts_with("VK_LITMUS_");
    name.split("::").all(is_word) && (name.contains("::") || is_capitalized) && !is_variable
}

struct RepositoryIndex<'f> {
    /// Every file and every folder.
    paths: BTreeSet<&'f str>,
    /// The folders of crates.
    crates: BTreeSet<&'f str>,
    /// Items that Rust sources define, and package names.
    defined: BTreeSet<String>,
}

impl<'f> RepositoryIndex<'f> {
    fn from_files(files: &'f [SourceFile]) -> RepositoryIndex<'f> {
        let paths = files.iter().flat_map(|file| {
            let folders = file.path.match_indices('/').map(|(at, _)| &file.path[..at]);
            folders.chain([file.path.as_str()])
        });
        let crates = files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
        let mut defined = BTreeSet::new();
        for file in files.iter().filter(|file| file.path.ends_with(".rs") && file.path.contains("/src/")) {
            add_definitions(&blank_literals(&file.text), &mut defined);
            let stem = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
            defined.extend(stem.map(str::to_owned));
        }
        let mut tree = RepositoryIndex { paths: paths.collect(), crates: crates.collect(), defined };
        let packages = tree.crates.iter().filter_map(|folder| folder.rsplit('/').next());
        tree.defined.extend(packages.map(str::to_owned));
        tree
    }

    /// Returns the innermost crate that contains a path.
    fn innermost_crate(&self, path: &str) -> Option<&'f str> {
        let contains_path =
            |folder: &&&str| path.strip_prefix(**folder).is_some_and(|rest| rest.starts_with('/'));
        self.crates.iter().filter(contains_path).max_by_key(|folder| folder.len()).copied()
    }

    /// Returns true if the path exists from the root or below one of the crates.
    fn has_path(&self, path: &str, crates: &[&str]) -> bool {
        let is_below_crate = |known: &&&str| {
            let ends = known.strip_suffix(path).is_some_and(|before| before.ends_with('/'));
            ends && crates.iter().any(|folder| self.innermost_crate(known) == Some(*folder))
        };
        self.paths.contains(path) || self.paths.iter().any(|known| is_below_crate(&known))
    }

    /// Returns true if each part of a name is a module, type, variant, function, constant or lint.
    fn is_defined(&self, name: &str) -> bool {
        name.starts_with("clippy::") || name.split("::").all(|part| self.defined.contains(part))
    }
}

/// Adds the names of the items in a source without comments.
fn add_definitions(text: &str, defined: &mut BTreeSet<String>) {
    const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "union"];
    let parts: Vec<&str> = words(text).filter(|word| !word.is_empty()).collect();
    for pair in parts.windows(2) {
        if let [item, name] = pair
            && ITEMS.contains(item)
        {
            defined.insert((*name).to_owned());
        }
    }
}
