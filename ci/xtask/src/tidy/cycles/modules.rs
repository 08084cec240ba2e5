//! The module tree of a crate, read from the tokens of its sources: items, imports and paths of each module.
//!
//! A path leads to the file that defines the item: facades (`pub use`) are followed. Code under `#[cfg(test)]`,
//! attributes, and calls of methods are not read. A block that imports adds to the imports of its module.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::code::blank_literals;
use crate::tidy::source::SourceFile;

/// A reference from one file to an item that another file defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemReference {
    pub from: String,
    pub to: String,
    /// The last segment of the path that names the item.
    pub name: String,
    /// The first line with this reference.
    pub line: usize,
}

/// Returns the references between the files of the crate whose root is `path`, sorted.
pub fn find_references(files: &BTreeMap<&str, &SourceFile>, path: &str) -> Vec<ItemReference> {
    let mut tree = ModuleTree { files, modules: Vec::new() };
    tree.read_file(path, &child_folder(path, true), None);
    let mut found: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for (index, module) in tree.modules.iter().enumerate() {
        let imports = module.imports.iter().filter(|import| !import.is_facade);
        let imports = imports.map(|import| (&import.segments, &import.line));
        for (segments, line) in module.paths.iter().chain(imports) {
            let Some(PathTarget::Item(file)) = tree.resolve(index, segments, &mut BTreeSet::new()) else {
                continue;
            };
            if file != module.file {
                let name = segments.last().cloned().unwrap_or_default();
                let first = found.entry((module.file.clone(), file, name)).or_insert(*line);
                *first = *line.min(first);
            }
        }
    }
    found.into_iter().map(|((from, to, name), line)| ItemReference { from, to, name, line }).collect()
}

/// Returns the folder of a file's child modules.
fn child_folder(path: &str, is_root: bool) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    if is_root || path.ends_with("/mod.rs") {
        folder.to_owned()
    } else {
        path.trim_end_matches(".rs").to_owned()
    }
}

/// One name that a `use` brings into scope.
#[derive(Debug)]
struct Import {
    /// The name in scope; `*` for every name of the module or enum.
    name: String,
    segments: Vec<String>,
    line: usize,
    /// True for `pub use`: the file forwards the name and needs it only if its own code names it.
    is_facade: bool,
}

/// A module: a file, or an inline `mod` block of a file.
#[derive(Debug, Default)]
struct RustModule {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// The paths as written, such as `super::Options`, and their first lines.
    paths: BTreeMap<Vec<String>, usize>,
}

/// The meaning of a path.
enum PathTarget {
    Module(usize),
    /// An item, and the file that defines it.
    Item(String),
}

struct ModuleTree<'f> {
    files: &'f BTreeMap<&'f str, &'f SourceFile>,
    modules: Vec<RustModule>,
}

impl ModuleTree<'_> {
    /// Adds the module in the file at `path`, and its descendants.
    fn read_file(&mut self, path: &str, folder: &str, parent: Option<usize>) -> Option<usize> {
        let file = self.files.get(path)?;
        let text = blank_literals(&file.text);
        let tokens = tokenize(&text);
        let module = self.add_module(path, parent);
        self.read_items(&tokens, folder, module);
        Some(module)
    }

    fn add_module(&mut self, file: &str, parent: Option<usize>) -> usize {
        self.modules.push(RustModule { file: file.to_owned(), parent, ..RustModule::default() });
        self.modules.len() - 1
    }

    fn read_items(&mut self, tokens: &[SourceToken<'_>], folder: &str, module: usize) {
        let mut at = 0;
        let mut is_public = false;
        while let Some(token) = tokens.get(at) {
            let next = tokens.get(at + 1).map_or("", |token| token.text);
            match token.text {
                "#" => {
                    at = after_attribute(tokens, at);
                    continue;
                }
                "pub" => {
                    is_public = true;
                    at = if next == "(" { after_group(tokens, at + 1) } else { at + 1 };
                    continue;
                }
                "mod" => {
                    let is_inline = tokens.get(at + 2).is_some_and(|token| token.text == "{");
                    let end = after_item(tokens, at, is_inline);
                    let inner = format!("{folder}/{next}");
                    let child = if is_inline {
                        let child = self.add_module(&self.modules[module].file.clone(), Some(module));
                        self.read_items(&tokens[at + 3..end.saturating_sub(1).max(at + 3)], &inner, child);
                        Some(child)
                    } else {
                        let nested = format!("{inner}/mod.rs");
                        self.read_file(&format!("{inner}.rs"), &inner, Some(module))
                            .or_else(|| self.read_file(&nested, &inner, Some(module)))
                    };
                    if let Some(child) = child {
                        self.modules[module].children.insert(next.to_owned(), child);
                    }
                    at = end;
                }
                "use" => {
                    let end = after_item(tokens, at, false);
                    self.read_imports(&tokens[at + 1..end], module, is_public);
                    at = end;
                }
                "const" if matches!(next, "fn" | "unsafe" | "async" | "extern") => at += 1,
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" => {
                    let end = after_item(tokens, at, !matches!(token.text, "type" | "const" | "static"));
                    let start = if next == "mut" { at + 2 } else { at + 1 };
                    if let Some(name) = tokens.get(start) {
                        self.modules[module].items.insert(name.text.to_owned());
                    }
                    self.read_code(&tokens[(start + 1).min(end)..end], module);
                    at = end;
                }
                "macro_rules" => {
                    let end = after_item(tokens, at, true);
                    if let Some(name) = tokens.get(at + 2) {
                        self.modules[module].items.insert(name.text.to_owned());
                    }
                    self.read_code(&tokens[(at + 3).min(end)..end], module);
                    at = end;
                }
                "unsafe" | "async" | "extern" | ";" => at += 1,
                _ => {
                    let end = after_item(tokens, at, true);
                    self.read_code(&tokens[at..end], module);
                    at = end;
                }
            }
            is_public = false;
        }
    }

    /// Reads the tree of a `use`, without the keyword.
    fn read_imports(&mut self, tokens: &[SourceToken<'_>], module: usize, is_facade: bool) {
        let mut prefix: Vec<String> = Vec::new();
        let mut opened: Vec<usize> = Vec::new();
        let mut at = 0;
        let mut group_prefix = 0;
        while let Some(token) = tokens.get(at) {
            match token.text {
                "{" => {
                    opened.push(group_prefix);
                    group_prefix = prefix.len();
                }
                "}" => {
                    prefix.truncate(opened.pop().unwrap_or(0));
                    group_prefix = prefix.len();
                }
                "," | ";" => prefix.truncate(group_prefix),
                "::" => {}
                word => {
                    prefix.push(word.to_owned());
                    let is_leaf = tokens.get(at + 1).is_none_or(|next| next.text != "::");
                    if is_leaf {
                        let mut segments = prefix.clone();
                        if word == "self" || word == "*" {
                            segments.pop();
                        }
                        let mut name =
                            if word == "*" { Some("*") } else { segments.last().map(String::as_str) };
                        if tokens.get(at + 1).is_some_and(|next| next.text == "as") {
                            name = tokens.get(at + 2).map(|token| token.text);
                            at += 2;
                        }
                        let name = name.unwrap_or_default().to_owned();
                        let import = Import { name, segments, line: token.line, is_facade };
                        self.modules[module].imports.push(import);
                    }
                }
            }
            at += 1;
        }
    }

    /// Reads the paths and imports inside an item.
    fn read_code(&mut self, tokens: &[SourceToken<'_>], module: usize) {
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if token.text == "#" && text(at + 1) == "[" {
                at = after_attribute(tokens, at);
                continue;
            }
            // The bound `use<…>` is not an import.
            if token.text == "use" && text(at + 1) != "<" {
                let end = after_item(tokens, at, false);
                self.read_imports(&tokens[at + 1..end], module, false);
                at = end;
                continue;
            }
            let before = |back: usize| at.checked_sub(back).map_or("", text);
            let is_member = before(1) == "." && before(2) != ".";
            if !is_word(token.text) || is_member || matches!(before(1), "::" | "'") {
                at += 1;
                continue;
            }
            let mut segments = vec![token.text.to_owned()];
            while text(at + 1) == "::" && is_word(text(at + 2)) {
                segments.push(text(at + 2).to_owned());
                at += 2;
            }
            self.modules[module].paths.entry(segments).or_insert(token.line);
            at += 1;
        }
    }

    /// Follows a path that is written in `module`.
    fn resolve(
        &self,
        module: usize,
        path: &[String],
        visited: &mut BTreeSet<(usize, String)>,
    ) -> Option<PathTarget> {
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => PathTarget::Module(0),
            "self" => PathTarget::Module(module),
            "super" => PathTarget::Module(self.modules[module].parent?),
            name => self.resolve_name(module, name, rest.is_empty(), visited)?,
        };
        while let (PathTarget::Module(inner), Some((name, after))) = (&target, rest.split_first()) {
            target = match name.as_str() {
                "super" => PathTarget::Module(self.modules[*inner].parent?),
                name => self.resolve_name(*inner, name, after.is_empty(), visited)?,
            };
            rest = after;
        }
        Some(target)
    }

    /// Returns the meaning of a name in a module. A module and an item may share it: the last segment of a
    /// path is the item.
    fn resolve_name(
        &self,
        module: usize,
        name: &str,
        is_last: bool,
        visited: &mut BTreeSet<(usize, String)>,
    ) -> Option<PathTarget> {
        let RustModule { file, children, items, imports, .. } = &self.modules[module];
        let child = children.get(name).map(|child| PathTarget::Module(*child));
        if child.is_some() && !is_last {
            return child;
        }
        if items.contains(name) {
            return Some(PathTarget::Item(file.clone()));
        }
        if !visited.insert((module, name.to_owned())) {
            return child;
        }
        let named = imports.iter().filter(|import| import.name == name);
        let mut found = named.filter_map(|import| self.resolve(module, &import.segments, visited));
        let found = found.next().or_else(|| {
            imports.iter().filter(|import| import.name == "*").find_map(|import| {
                match self.resolve(module, &import.segments, visited)? {
                    PathTarget::Module(inner) if inner != module => {
                        self.resolve_name(inner, name, is_last, visited)
                    }
                    PathTarget::Module(_) | PathTarget::Item(_) => None,
                }
            })
        });
        if found.is_some() {
            visited.remove(&(module, name.to_owned()));
        }
        found.or(child)
    }
}

/// A word, `::`, or another character.
#[derive(Clone, Copy, Debug)]
struct SourceToken<'t> {
    text: &'t str,
    line: usize,
}

/// Cuts text without comments and literals into tokens.
fn tokenize(text: &str) -> Vec<SourceToken<'_>> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(rest) {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            found.push(SourceToken { text: &rest[..length], line: index + 1 });
            rest = rest[length..].trim_start();
        }
    }
    found
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns the index after the group that the token at `at` opens.
fn after_group(tokens: &[SourceToken<'_>], at: usize) -> usize {
    let mut depth = 0usize;
    for (offset, token) in tokens[at..].iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + offset + 1;
        }
    }
    tokens.len()
}

/// Returns the index after the item at `at`: after its `;`, or after its block if `ends_with_block`.
fn after_item(tokens: &[SourceToken<'_>], mut at: usize, ends_with_block: bool) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" => return at + 1,
            "{" if ends_with_block => return after_group(tokens, at),
            "(" | "[" | "{" => at = after_group(tokens, at),
            _ => at += 1,
        }
    }
    tokens.len()
}

/// Returns the index after the attribute at `at`, and after its item if that is compiled for tests only.
fn after_attribute(tokens: &[SourceToken<'_>], at: usize) -> usize {
    let start = if tokens.get(at + 1).is_some_and(|token| token.text == "!") { at + 2 } else { at + 1 };
    let mut end = after_group(tokens, start.min(tokens.len()));
    let words: Vec<_> = tokens[start.min(end)..end].iter().map(|token| token.text).collect();
    if words != ["[", "cfg", "(", "test", ")", "]"] {
        return end;
    }
    while tokens.get(end).is_some_and(|token| token.text == "#") {
        end = after_attribute(tokens, end);
    }
    let is_value = tokens[end..]
        .iter()
        .find(|token| !matches!(token.text, "pub" | "(" | ")" | "crate" | "super"))
        .is_some_and(|token| matches!(token.text, "use" | "const" | "static" | "type" | "let"));
    after_item(tokens, end, !is_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::test_file;

    /// The references between these files, as `from:line to name`. Paths are below `src`.
    fn list_references(sources: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            sources.iter().map(|(path, text)| test_file(&format!("src/{path}"), text)).collect();
        let files = files.iter().map(|file| (file.path.as_str(), file)).collect();
        let found = find_references(&files, "src/lib.rs");
        let below_source = |path: &str| path.trim_start_matches("src/").to_owned();
        found
            .iter()
            .map(|found| {
                format!(
                    "{}:{} {} {}",
                    below_source(&found.from),
                    found.line,
                    below_source(&found.to),
                    found.name
                )
            })
            .collect()
    }

    const A: (&str, &str) =
        ("a.rs", "pub struct A;\npub fn f() {}\n#[macro_export]\nmacro_rules! m { () => {} }\n");

    #[test]
    fn imports_paths_and_macros_are_followed() {
        for (text, expected) in [
            ("use super::a::A as B;\n", "b.rs:1 a.rs A"),
            ("use crate::{a::{self, A}};\n", "b.rs:1 a.rs A"),
            ("fn g() {\n    crate::a::f();\n}\n", "b.rs:2 a.rs f"),
            ("use crate::a;\nconst F: fn() = a::f;\n", "b.rs:2 a.rs f"),
            ("fn g() { assert!(self::h::f()); }\nuse super::a as h;\n", "b.rs:1 a.rs f"),
            ("use super::a::*;\nfn g(a: &A) {}\n", "b.rs:2 a.rs A"),
            ("impl Clone for B<[u8; 2]> { fn clone(&self) -> Self { super::a::m!() } }\n", "b.rs:1 a.rs m"),
            ("mod inner { fn g() { super::super::a::f() } }\n", "b.rs:1 a.rs f"),
            ("pub use super::a::A;\nfn g(_: A) {}\n", "b.rs:2 a.rs A"),
            ("fn g() -> impl Clone + use<> { super::a::f() }\n", "b.rs:1 a.rs f"),
        ] {
            assert_eq!(
                list_references(&[("lib.rs", "mod a;\nmod b;\n"), A, ("b.rs", text)]),
                [expected],
                "{text}"
            );
        }
    }

    #[test]
    fn facades_tests_attributes_and_members_are_not_references() {
        for text in [
            "pub use super::a::A;\n",
            "pub(crate) use crate::a::f;\n",
            "use crate::a;\n",
            "#[cfg(test)]\nmod tests { use crate::a::A; }\n",
            "#[cfg(test)]\nuse crate::a::A;\n",
            "#[cfg(test)]\npub(crate) fn g() { crate::a::f(); }\n",
            "#[doc = super::a::m!()]\nstruct B;\n",
            "// super::a::f()\nconst T: &str = \"super::a::f()\";\n",
            "fn g(x: X) { x.f(); std::a::f(); }\n",
        ] {
            assert_eq!(
                list_references(&[("lib.rs", "mod a;\nmod b;\n"), A, ("b.rs", text)]),
                Vec::<String>::new(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_facade_leads_to_the_file_that_defines_the_item() {
        let sources = [
            ("lib.rs", "mod b;\nmod facade;\npub use facade::*;\n"),
            ("facade/mod.rs", "mod inner;\npub use self::inner::A;\n"),
            ("facade/inner.rs", "pub struct A;\n"),
            ("b.rs", "use crate::A;\nfn g() -> crate::facade::A { A }\n"),
        ];
        assert_eq!(list_references(&sources), ["b.rs:1 facade/inner.rs A"]);
    }

    #[test]
    fn a_name_that_leads_back_to_itself_ends() {
        let sources = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "pub use crate::b::*;\n"),
            ("b.rs", "pub use crate::a::*;\nfn g() { x() }\n"),
        ];
        assert_eq!(list_references(&sources), Vec::<String>::new());
    }
}
